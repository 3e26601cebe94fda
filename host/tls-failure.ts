/** Explains a failed TLS connection for operators of the server and issuers of its certificate. */
import { Errno } from "./errno";
import type { TlsFailure } from "./port";

const refusals: Readonly<Record<number, string>> = {
  [Errno.ECONNREFUSED]: "connection refused",
  [Errno.ECONNRESET]: "the connection was reset",
  [Errno.ENETUNREACH]: "no route to it",
  [Errno.EHOSTUNREACH]: "no route to it",
  // The error of a route with type `blackhole`.
  [Errno.EINVAL]: "no route to it",
  [Errno.EACCES]: "the node forbids the connection",
  [Errno.EPERM]: "the node forbids the connection",
};

/** Messages of the TLS library, explained for issuers of certificates. */
const HINTS: readonly (readonly [RegExp, string])[] = [
  // RFC 8446, section 6.2: handshake_failure has several causes.
  [
    /alert 40\b/,
    "server and client have no version of TLS, cipher suite, key type or group in common (TLS 1.2 and 1.3 with AES-GCM or ChaCha20; keys of RSA or ECDSA, not Ed25519; groups X25519, P-256, P-384 and P-521, not post-quantum ones)",
  ],
  // What the library reports of a handshake message that is larger than its buffer.
  [/Bad input parameters/, "the server's certificates may be larger than 16 KB, the limit"],
  [/algorithm \(oid\) is unsupported/, "Ed25519 is not supported: use RSA or ECDSA"],
  [/unacceptable key/, "RSA keys need 2048 bits"],
  [/unacceptable hash/, "SHA-1 is not accepted: use SHA-256"],
];

function explained(text: string): string {
  const hint = HINTS.find(([pattern]) => pattern.test(text))?.[1];
  return hint === undefined ? text : `${text}; ${hint}`;
}

/** @param limitMs the time limit of the connection */
export function reasonOf({ step, error, text: given }: TlsFailure, limitMs: number): string {
  const text = explained(given);
  if (error === -Errno.ETIMEDOUT) return `no connection within ${limitMs} ms`;
  switch (step) {
    case "ca":
      return `the certificate authority cannot be read: ${text}`;
    case "verify":
      return `its certificate is not trusted: ${text}`;
    case "connect":
      return refusals[-error] ?? `cannot connect: error ${-error}`;
    case "handshake":
      return error < 0 ? "the connection broke during the TLS handshake" : `the TLS handshake failed: ${text}`;
  }
}
