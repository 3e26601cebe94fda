import { type Credential, readCredential, splitCertificates } from "./credential";
import type { Issued } from "./issue";

/** What the Secret holds, and all replicas agree on. */
export interface State<C extends Issued = Credential> {
  /** What clients are shown. */
  readonly serving: C;
  /** What they will be shown once they trust it. */
  readonly next?: C;
  /** Certificates of the authorities that clients are to trust, PEM. */
  readonly trusted: readonly string[];
}

type Data = Readonly<Record<string, string | undefined>>;

/** Reads the Secret's `data`. @throws where it cannot serve clients that call it by a DNS name */
export function decodeState(data: Data, name: string): State {
  const text = (key: string) => Buffer.from(data[key] ?? "", "base64").toString("utf8");
  const trusted = splitCertificates(text("ca.crt"));
  const read = (what: string) =>
    readCredential({ cert: text(`${what}.crt`), key: text(`${what}.key`) }, what, { name, authorities: trusted });
  const serving = read("tls");
  return data["next.crt"] === undefined ? { serving, trusted } : { serving, next: read("next"), trusted };
}

const base64 = (text: string) => Buffer.from(text, "utf8").toString("base64");

/** The text of the bundle, in base64 as the API has it. */
export const encodeTrusted = (trusted: readonly string[]) => base64(trusted.join(""));

/** The Secret's `data`; null where a member has to go. */
export function encodeState({ serving, next, trusted }: State<Issued>): Record<string, string | null> {
  return {
    "tls.crt": base64(serving.cert),
    "tls.key": base64(serving.key),
    "ca.crt": encodeTrusted(trusted),
    "next.crt": next === undefined ? null : base64(next.cert),
    "next.key": next === undefined ? null : base64(next.key),
  };
}
