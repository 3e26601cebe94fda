import { readText } from "../host/files";
import type { Host } from "../host/port";

/** Names of the tables of legacy iptables in the namespace that the process is in; absent where it was never used. */
const LEGACY_TABLES = "/proc/self/net/ip_tables_names";

/** Whether legacy iptables has a nat table in the namespace that the process is in. @throws SystemError */
export function hasLegacyNat(host: Host): boolean {
  return host.access(LEGACY_TABLES) === 0 && readText(host, LEGACY_TABLES).split("\n").includes("nat");
}
