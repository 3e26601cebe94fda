import { Errno, SystemError } from "../host/errno";
import { readText } from "../host/files";
import type { Host } from "../host/port";

/** Names of the tables of legacy iptables in the namespace that the process is in; absent if it was never used. */
const LEGACY_TABLES = "/proc/self/net/ip_tables_names";

/**
 * Whether legacy iptables has a nat table in the namespace that the process is in. Of a pod with a user namespace only
 * its own root, and who may override permissions, can tell: then this is false. @throws SystemError
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
