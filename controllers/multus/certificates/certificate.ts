import { equal } from "../../../system/bytes";
import { pairProblem, publicKeyOf } from "../../../system/crypto";
import { isFor, isIssuedBy, readCertificate, type Validity, type X509 } from "./x509";

/** A certificate that clients are shown, with its key. */
export interface TlsPair {
  /** PEM; the certificate comes first, then those that lead from it to the authority, if any. */
  readonly cert: string;
  /** PEM. */
  readonly key: string;
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

const KEY = /-----BEGIN (?:\w+ )?PRIVATE KEY-----/;
const ENCRYPTED = /-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m;

function readPublicKey(key: string): Uint8Array {
  if (!KEY.test(key)) throw new Error("no private key in PEM form");
  if (ENCRYPTED.test(key)) throw new Error("the private key is encrypted");
  return publicKeyOf(key);
}

/**
 * Reads a certificate and its key.
 * @param what names both in errors
 * @throws Error if they do not belong together, cannot be read, or cannot be served; it does not quote the key
 */
export function readPair({ cert, key }: TlsPair, what: string): X509 {
  const certificate = attempt(`${what}.crt`, () => readCertificate(cert));
  const publicKey = attempt(`${what}.key`, () => readPublicKey(key));
  if (!equal(publicKey, certificate.publicKey)) throw new Error(`${what}.key is not the key of ${what}.crt`);
  // Read as a server does, with the certificates that come after the first.
  const problem = pairProblem(cert, key);
  if (problem !== undefined) throw new Error(`${what}.crt and ${what}.key: ${problem}`);
  return certificate;
}

/**
 * The way from a certificate to an authority, or to itself if it is trusted as it stands; undefined if there is none.
 * @param between those that may lead to an authority; those that were tried are removed
 */
function chainOf(leaf: X509, authorities: readonly X509[], between: Set<X509>): readonly X509[] | undefined {
  const ca = authorities.find((each) => equal(each.der, leaf.der) || isIssuedBy(leaf, each));
  if (ca !== undefined) return [leaf, ca];
  for (const next of between) {
    if (!isIssuedBy(leaf, next)) continue;
    between.delete(next);
    const rest = chainOf(next, authorities, between);
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

/**
 * Reads a certificate as clients do.
 * @throws Error if they would refuse it, whatever the time
 */
export function readServingCertificate(
  pair: TlsPair,
  what: string,
  { name, authorities }: Expected,
): ServingCertificate {
  const certificate = readPair(pair, what);
  if (!isFor(certificate, name)) throw new Error(`${what}.crt is not valid for ${name}`);
  const read = (file: string, pems: readonly string[]) => pems.map((pem) => attempt(file, () => readCertificate(pem)));
  const trusted = read("ca.crt", authorities);
  const between = read(`${what}.crt`, splitCertificates(pair.cert).slice(1));
  const chain = chainOf(certificate, trusted, new Set(between));
  if (chain === undefined) throw new Error(`${what}.crt does not lead to a certificate in ca.crt`);
  return {
    ...pair,
    ca: authorities[trusted.indexOf(chain.at(-1) as X509)] as string,
    validFrom: Math.max(...chain.map(({ validFrom }) => validFrom)),
    validTo: Math.min(...chain.map(({ validTo }) => validTo)),
  };
}

/** The authority among some certificates that a key belongs to; undefined if it belongs to none of them. */
export function readAuthority(key: string, certificates: readonly string[]): Authority | undefined {
  for (const cert of key === "" ? [] : certificates) {
    try {
      const { isAuthority, publicKey, validFrom, validTo } = readCertificate(cert);
      if (isAuthority && equal(publicKey, readPublicKey(key))) return { cert, key, validFrom, validTo };
    } catch {
      // It cannot be read: it signs nothing.
    }
  }
  return undefined;
}
