import { equal } from "../../../system/bytes";
import { pairProblem, publicKeyOf } from "../../../system/crypto";
import { isFor, isIssuedBy, readCertificate, type Validity, type X509 } from "./x509";

/** A served certificate with its key. */
export interface TlsPair {
  /** PEM; the certificate first, then any intermediate certificates. */
  readonly cert: string;
  /** PEM. */
  readonly key: string;
}

/** A certificate authority with its key. */
export interface Authority extends TlsPair, Validity {}

/** A certificate that clients accept; its validity is the shortest one in its chain. */
export interface ServingCertificate extends TlsPair, Validity {
  /** Certificate of the authority that clients must trust, PEM. */
  readonly ca: string;
}

export const isValidAt = ({ validFrom, validTo }: Validity, now: number) => validFrom <= now && now < validTo;

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** Splits a text into its certificates. */
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
 * Reads a certificate and its key. @param what names both in errors @throws Error if they do not match, cannot be read,
 * or cannot be served; the error does not quote the key
 */
export function readPair({ cert, key }: TlsPair, what: string): X509 {
  const certificate = attempt(`${what}.crt`, () => readCertificate(cert));
  const publicKey = attempt(`${what}.key`, () => readPublicKey(key));
  if (!equal(publicKey, certificate.publicKey)) throw new Error(`${what}.key is not the key of ${what}.crt`);
  // Read as a server does, with the intermediate certificates.
  const problem = pairProblem(cert, key);
  if (problem !== undefined) throw new Error(`${what}.crt and ${what}.key: ${problem}`);
  return certificate;
}

/**
 * The chain from a certificate to an authority, or only itself if it is trusted directly; undefined without a chain.
 * @param between possible intermediates; tried ones are removed
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
  /** DNS name that it must be valid for. */
  readonly name: string;
  /** One of these must have signed it, or an intermediate in `cert`. */
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

/** The authority among some certificates whose key this is; undefined without a match. */
export function readAuthority(key: string, certificates: readonly string[]): Authority | undefined {
  for (const cert of key === "" ? [] : certificates) {
    try {
      const { isAuthority, publicKey, validFrom, validTo } = readCertificate(cert);
      if (isAuthority && equal(publicKey, readPublicKey(key))) return { cert, key, validFrom, validTo };
    } catch {
      // It cannot be read, so it cannot sign.
    }
  }
  return undefined;
}
