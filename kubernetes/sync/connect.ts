/** Verified connections to an API server. */
import { Errno } from "../../host/errno";
import { readText } from "../../host/files";
import type { Host, TlsFailure } from "../../host/port";
import type { ApiServer } from "../api-server";

/** There is no connection; `dropped` where the server closed it after it was made. */
export class ConnectionFailed extends Error {
  constructor(
    message: string,
    readonly dropped = false,
  ) {
    super(message);
  }
}

/** Where distributions keep the certificate authorities they trust, as Go's crypto/x509 looks for them. */
const SYSTEM_AUTHORITIES = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/pki/tls/cacert.pem",
  "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
  "/etc/ssl/cert.pem",
];

function systemAuthorities(host: Host): string {
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

/** Addresses of IPv4 and IPv6 in turn: where one family does not work, the other is tried early. */
function mixed(addresses: readonly string[]): readonly string[] {
  const [v4, v6] = [false, true].map((wanted) => addresses.filter((each) => each.includes(":") === wanted));
  return Array.from(addresses, (_, at) => [v4?.[at], v6?.[at]])
    .flat()
    .filter((each) => each !== undefined);
}

function addressesOf(host: Host, name: string, milliseconds: number): readonly string[] {
  if (isAddress(name)) return [name];
  const listed = listedAddresses(host, name);
  if (listed.length > 0) return mixed(listed);
  const found = host.resolve(name, milliseconds);
  if (typeof found !== "number" && found.length > 0) return mixed(found);
  const why = found === -Errno.ETIMEDOUT ? `cannot be resolved within ${milliseconds} ms` : "cannot be resolved";
  throw new ConnectionFailed(`its host name cannot be resolved: ${name} ${why}`);
}

const refusals: Readonly<Record<number, string>> = {
  [Errno.ECONNREFUSED]: "connection refused",
  [Errno.ECONNRESET]: "the connection was reset",
  [Errno.ENETUNREACH]: "no route to it",
  [Errno.EHOSTUNREACH]: "no route to it",
  // What a route of type `blackhole` answers.
  [Errno.EINVAL]: "no route to it",
  [Errno.EACCES]: "the node forbids the connection",
  [Errno.EPERM]: "the node forbids the connection",
};

const BROKEN: readonly number[] = [-Errno.ECONNRESET, -Errno.EPIPE];

/** What messages of the TLS library mean for those who issue certificates. */
const HINTS: readonly (readonly [RegExp, string])[] = [
  // RFC 8446, section 6.2: handshake_failure has several causes.
  [
    /alert 40\b/,
    "server and plugin have no version of TLS, cipher suite or key type in common (TLS 1.2 and 1.3 with AES-GCM or ChaCha20; keys of RSA or ECDSA, not Ed25519)",
  ],
  [/algorithm \(oid\) is unsupported/, "Ed25519 is not supported: use RSA or ECDSA"],
  [/unacceptable hash/, "SHA-1 is not accepted: use SHA-256"],
];

function explained(text: string): string {
  const hint = HINTS.find(([pattern]) => pattern.test(text))?.[1];
  return hint === undefined ? text : `${text}; ${hint}`;
}

function failure({ step, error, text: given }: TlsFailure, limit: number): ConnectionFailed {
  const text = explained(given);
  if (error === -Errno.ETIMEDOUT) return new ConnectionFailed(`no connection within ${limit} ms`);
  switch (step) {
    case "ca":
      return new ConnectionFailed(`the kubeconfig's certificate authority cannot be read: ${text}`);
    case "certificate":
      return new ConnectionFailed(`the kubeconfig's client certificate cannot be used: ${text}`);
    case "verify":
      return new ConnectionFailed(`its certificate is not trusted: ${text}`);
    case "connect":
      return new ConnectionFailed(refusals[-error] ?? `cannot connect: error ${-error}`, BROKEN.includes(error));
    case "handshake":
      if (error < 0) return new ConnectionFailed("the connection broke during the TLS handshake", true);
      return new ConnectionFailed(`the TLS handshake failed: ${text}`);
  }
}

/**
 * Connects to the first of the server's addresses that takes a connection, and verifies it as the kubeconfig says.
 * @param milliseconds for everything
 * @throws ConnectionFailed
 */
export function connect(host: Host, server: ApiServer, milliseconds: number): void {
  const begin = host.elapsed();
  const left = () => Math.max(1, Math.round(milliseconds - (host.elapsed() - begin)));
  const trust = {
    port: server.port,
    name: server.serverName ?? server.host,
    ca: server.ca ?? (server.insecure === true ? "" : systemAuthorities(host)),
    certificate: server.certificate?.cert ?? "",
    key: server.certificate?.key ?? "",
    insecure: server.insecure === true,
    judge: (chain: readonly Uint8Array[]) => host.load("certificates").problemOf(chain),
  };
  const addresses = addressesOf(host, server.host, left()).join("\n");
  const problem = host.tlsConnect({ ...trust, addresses }, left());
  if (problem === undefined) return;
  host.tlsClose();
  throw failure(problem, milliseconds);
}
