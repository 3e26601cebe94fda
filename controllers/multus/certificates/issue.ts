import { randomBytes } from "node:crypto";
import type { TlsPair } from "../webhook/tls";

/** A certificate of the webhook's, with the authority that signed it and nothing else. */
export interface Issued extends TlsPair {
  /** Certificate of the authority, PEM. */
  readonly ca: string;
}

const HOUR_MS = 3_600_000;
const DNS = 2;

/** When something is valid that is made now: from a little earlier, for clocks that are slow. */
function validity(now: Date, validMs: number) {
  const notBeforeDate = new Date(now.getTime() - Math.min(HOUR_MS, validMs / 10));
  return { notBeforeDate, notAfterDate: new Date(now.getTime() + validMs) };
}

/**
 * Makes a certificate for some DNS names, signed by an authority of its own, whose key is forgotten: nothing else can
 * ever be signed with it.
 */
export async function issue(names: readonly string[], now: Date, validMs: number): Promise<Issued> {
  // Loaded only where one is made: it is large.
  const { generate } = require("selfsigned") as typeof import("selfsigned");
  const common = { keyType: "ec", algorithm: "sha256", ...validity(now, validMs) } as const;
  const [name = ""] = names;
  const subject = (text: string) => [{ name: "commonName", value: text }];
  // Each authority has a name of its own, so that a chain leads to one of several only.
  const ca = await generate(subject(`linkerd-multus ${randomBytes(8).toString("hex")}`), {
    ...common,
    extensions: [
      { name: "basicConstraints", cA: true, pathLenConstraint: 0, critical: true },
      { name: "keyUsage", keyCertSign: true, critical: true },
    ],
  });
  const { cert, private: key } = await generate(subject(name.slice(0, 64)), {
    ...common,
    ca: { cert: ca.cert, key: ca.private },
    extensions: [
      { name: "basicConstraints", cA: false, critical: true },
      { name: "keyUsage", digitalSignature: true, critical: true },
      { name: "extKeyUsage", serverAuth: true },
      { name: "subjectAltName", altNames: names.map((value) => ({ type: DNS, value })) },
    ],
  });
  return { cert: `${cert}\n`, key, ca: `${ca.cert}\n` };
}
