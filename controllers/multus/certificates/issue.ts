import { randomBytes } from "node:crypto";
import type { Authority, TlsPair } from "./certificate";

const HOUR_MS = 3_600_000;
const DNS = 2;

/** What is made now is valid from a little earlier, for clients whose clocks are slow. */
function validity(now: Date, validMs: number) {
  const notBeforeDate = new Date(now.getTime() - Math.min(HOUR_MS, validMs / 10));
  return { notBeforeDate, notAfterDate: new Date(now.getTime() + validMs) };
}

/** Loaded only where something is signed: it is large. */
const generator = () => (require("selfsigned") as typeof import("selfsigned")).generate;
const named = (name: string) => [{ name: "commonName", value: name }];
const algorithms = { keyType: "ec", algorithm: "sha256" } as const;

/** Makes a certificate authority that signs itself. */
export async function createAuthority(now: Date, validMs: number): Promise<Authority> {
  const valid = validity(now, validMs);
  // Each authority has a name of its own, so that a chain leads to one of several only.
  const { cert, private: key } = await generator()(named(`linkerd-multus ${randomBytes(8).toString("hex")}`), {
    ...algorithms,
    ...valid,
    extensions: [
      { name: "basicConstraints", cA: true, pathLenConstraint: 0, critical: true },
      { name: "keyUsage", keyCertSign: true, critical: true },
    ],
  });
  return {
    ...{ cert: `${cert}\n`, key },
    ...{ validFrom: valid.notBeforeDate.getTime(), validTo: valid.notAfterDate.getTime() },
  };
}

/** Makes a server's certificate for some DNS names, signed by an authority. */
export async function issueCertificate(
  names: readonly string[],
  by: Pick<Authority, "cert" | "key">,
  now: Date,
  validMs: number,
): Promise<TlsPair> {
  const [name = ""] = names;
  const { cert, private: key } = await generator()(named(name.slice(0, 64)), {
    ...algorithms,
    ...validity(now, validMs),
    ca: { cert: by.cert, key: by.key },
    extensions: [
      { name: "basicConstraints", cA: false, critical: true },
      { name: "keyUsage", digitalSignature: true, critical: true },
      { name: "extKeyUsage", serverAuth: true },
      { name: "subjectAltName", altNames: names.map((value) => ({ type: DNS, value })) },
    ],
  });
  return { cert: `${cert}\n`, key };
}
