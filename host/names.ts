/** Addresses of host names, found as by Go. */
import { Errno } from "./errno";
import { readText } from "./files";
import type { Host, LastingHost } from "./port";

const isAddress = (name: string) => name.includes(":") || /^\d{1,3}(\.\d{1,3}){3}$/.test(name);

const HOSTS = "/etc/hosts";
const plain = (name: string) => name.toLowerCase().replace(/\.$/, "");

/** The addresses of a name in /etc/hosts. The C library reads only 512 bytes of a line, and is case-sensitive. */
function listedAddresses(host: Host, name: string): readonly string[] {
  if (host.access(HOSTS) !== 0) return [];
  const lines = readText(host, HOSTS).split("\n");
  return lines.flatMap((line) => {
    const [address = "", ...names] = line.replace(/#.*/, "").trim().split(/\s+/);
    return isAddress(address) && names.some((each) => plain(each) === plain(name)) ? [address] : [];
  });
}

/** Alternates IPv4 and IPv6 addresses, so that the other family is tried early if one does not work. */
function mixed(addresses: readonly string[]): readonly string[] {
  const [v4, v6] = [false, true].map((wanted) => addresses.filter((each) => each.includes(":") === wanted));
  return Array.from(addresses, (_, at) => [v4?.[at], v6?.[at]])
    .flat()
    .filter((each) => each !== undefined);
}

/** Addresses of a host name without a name server: an address itself, or those in /etc/hosts. */
export function knownAddresses(host: Host, name: string): readonly string[] {
  return isAddress(name) ? [name] : mixed(listedAddresses(host, name));
}

/**
 * Addresses from {@link LastingHost.resolve}, alternating IPv4 and IPv6. @param limitMs its time limit @throws Error without
 * addresses
 */
export function resolvedAddresses(
  name: string,
  found: ReturnType<LastingHost["resolve"]>,
  limitMs: number,
): readonly string[] {
  if (typeof found !== "number" && found.length > 0) return mixed(found);
  const why = found === -Errno.ETIMEDOUT ? `cannot be resolved within ${limitMs} ms` : "cannot be resolved";
  throw new Error(`its host name cannot be resolved: ${name} ${why}`);
}
