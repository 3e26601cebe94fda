import { Errno, SystemError } from "../host/errno";
import { readText } from "../host/files";
import type { Host } from "../host/port";

/** Names of the tables of legacy iptables in the current namespace; absent if it was never used. */
const LEGACY_TABLES = "/proc/self/net/ip_tables_names";

/**
 * Whether legacy iptables has a nat table in the current namespace. In a pod with a user namespace, only its root or a
 * process that may override permissions can read this; otherwise it is false. @throws SystemError
 */
export function hasLegacyNat(host: Host): boolean {
  if (host.access(LEGACY_TABLES) !== 0) return false;
  try {
    return readText(host, LEGACY_TABLES).split("\n").includes("nat");
  } catch (error) {
    if (error instanceof SystemError && error.errno === Errno.EACCES) return false;
    throw error;
  }
}
