import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";

/** A certificate that clients are shown, with its key. */
export interface TlsPair {
  /** PEM; the certificate comes first, then those that lead from it to the authority, if any. */
  readonly cert: string;
  /** PEM. */
  readonly key: string;
}

/** When something is valid, in milliseconds since 1970. */
export interface Validity {
  readonly validFrom: number;
  readonly validTo: number;
}

/** A certificate authority with its key. */
export interface Authority extends TlsPair, Validity {}

/** A certificate that clients accept; its validity is that of the shortest link to the authority. */
export interface ServingCertificate extends TlsPair, Validity {
  /** Certificate of the authority that clients have to trust, PEM. */
  readonly ca: string;
}

export const isValidAt = ({ validFrom, validTo }: Validity, now: number) => validFrom <= now && now < validTo;

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** The certificates in a text, one by one. */
export const splitCertificates = (text: string): readonly string[] =>
  (text.match(CERTIFICATE) ?? []).map((pem) => `${pem}\n`);

function attempt<T>(what: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new Error(`${what}: ${(error as Error).message}`);
  }
}

/** Reads a certificate and its key. @throws where they do not belong together, are none, or cannot be served */
export function readPair({ cert, key }: TlsPair, what: string): X509Certificate {
  const certificate = attempt(`${what}.crt`, () => new X509Certificate(cert));
  const privateKey: KeyObject = attempt(`${what}.key`, () => createPrivateKey(key));
  if (!certificate.checkPrivateKey(privateKey)) throw new Error(`${what}.key is not the key of ${what}.crt`);
  // Read as a server does, with the certificates that come after the first.
  attempt(`${what}.crt and ${what}.key`, () => createSecureContext({ cert, key }));
  return certificate;
}

function isIssuedBy(certificate: X509Certificate, ca: X509Certificate): boolean {
  return ca.ca && certificate.checkIssued(ca) && certificate.verify(ca.publicKey);
}

interface Known {
  readonly authorities: readonly X509Certificate[];
  /** Those that may lead to an authority. */
  readonly between: readonly X509Certificate[];
}

/** The way from a certificate to an authority, or to itself where it is trusted as it stands; undefined: there is none. */
function chainOf(leaf: X509Certificate, { authorities, between }: Known): readonly X509Certificate[] | undefined {
  const ca = authorities.find((each) => each.fingerprint256 === leaf.fingerprint256 || isIssuedBy(leaf, each));
  if (ca !== undefined) return [leaf, ca];
  for (const next of between.filter((each) => isIssuedBy(leaf, each))) {
    const rest = chainOf(next, { authorities, between: between.filter((each) => each !== next) });
    if (rest !== undefined) return [leaf, ...rest];
  }
  return undefined;
}

interface Expected {
  /** DNS name that it has to be valid for. */
  readonly name: string;
  /** One of these has to have signed it, or one of those that come after it in `cert`. */
  readonly authorities: readonly string[];
}

/** Reads a certificate as clients do. @throws where they would refuse it, whatever the time */
export function readServingCertificate(
  pair: TlsPair,
  what: string,
  { name, authorities }: Expected,
): ServingCertificate {
  const certificate = readPair(pair, what);
  // The API server does not look at the common name.
  if (certificate.checkHost(name, { subject: "never" }) === undefined) {
    throw new Error(`${what}.crt is not valid for ${name}`);
  }
  const read = (file: string, pems: readonly string[]) =>
    pems.map((pem) => attempt(file, () => new X509Certificate(pem)));
  const trusted = read("ca.crt", authorities);
  const between = read(`${what}.crt`, splitCertificates(pair.cert).slice(1));
  const chain = chainOf(certificate, { authorities: trusted, between });
  if (chain === undefined) throw new Error(`${what}.crt does not lead to a certificate in ca.crt`);
  return {
    ...pair,
    ca: authorities[trusted.indexOf(chain.at(-1) as X509Certificate)] as string,
    validFrom: Math.max(...chain.map(({ validFrom }) => Date.parse(validFrom))),
    validTo: Math.min(...chain.map(({ validTo }) => Date.parse(validTo))),
  };
}

/** The authority among some certificates that a key belongs to; undefined where it belongs to none of them. */
export function readAuthority(key: string, certificates: readonly string[]): Authority | undefined {
  for (const cert of key === "" ? [] : certificates) {
    try {
      const certificate = new X509Certificate(cert);
      if (!certificate.ca || !certificate.checkPrivateKey(createPrivateKey(key))) continue;
      return { cert, key, validFrom: Date.parse(certificate.validFrom), validTo: Date.parse(certificate.validTo) };
    } catch {
      // Not to be read: it signs nothing.
    }
  }
  return undefined;
}
