/** Addresses of host names, and which certificate authorities the machine trusts: as Go looks for them. */
import { Errno } from "./errno";
import { readText } from "./files";
import type { Host } from "./port";

/** Where distributions keep the certificate authorities they trust, as Go's crypto/x509 looks for them. */
const SYSTEM_AUTHORITIES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/pki/tls/cacert.pem",
  "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

/** PEM of the authorities that the machine trusts; empty if it has none. */
export function systemAuthorities(host: Host): string {
  const path = SYSTEM_AUTHORITIES.find((each) => host.access(each) === 0);
  return path === undefined ? "" : readText(host, path);
}

const isAddress = (name: string) => name.includes(":") || /^\d{1,3}(\.\d{1,3}){3}$/.test(name);

const HOSTS = "/etc/hosts";
const plain = (name: string) => name.toLowerCase().replace(/\.$/, "");

/** The addresses of a name in /etc/hosts: the C library looks at 512 bytes of a line, and tells capital letters apart. */
function listedAddresses(host: Host, name: string): readonly string[] {
  if (host.access(HOSTS) !== 0) return [];
  const lines = readText(host, HOSTS).split("\n");
  return lines.flatMap((line) => {
    const [address = "", ...names] = line.replace(/#.*/, "").trim().split(/\s+/);
    return isAddress(address) && names.some((each) => plain(each) === plain(name)) ? [address] : [];
  });
}

/** Addresses of IPv4 and IPv6 in turn: if one family does not work, the other is tried early. */
function mixed(addresses: readonly string[]): readonly string[] {
  const [v4, v6] = [false, true].map((wanted) => addresses.filter((each) => each.includes(":") === wanted));
  return Array.from(addresses, (_, at) => [v4?.[at], v6?.[at]])
    .flat()
    .filter((each) => each !== undefined);
}

/** Addresses of a host name that no name server has to be asked for: its own, or those in /etc/hosts. */
export function knownAddresses(host: Host, name: string): readonly string[] {
  return isAddress(name) ? [name] : mixed(listedAddresses(host, name));
}

/**
 * Addresses that {@link Host.resolve} gave, those of IPv4 and IPv6 in turn.
 * @param limitMs what it was given
 * @throws Error if there are none
 */
export function resolvedAddresses(
  name: string,
  found: ReturnType<Host["resolve"]>,
  limitMs: number,
): readonly string[] {
  if (typeof found !== "number" && found.length > 0) return mixed(found);
  const why = found === -Errno.ETIMEDOUT ? `cannot be resolved within ${limitMs} ms` : "cannot be resolved";
  throw new Error(`its host name cannot be resolved: ${name} ${why}`);
}
