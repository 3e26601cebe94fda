import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import type { TlsPair } from "../webhook/tls";
import type { Issued } from "./issue";

/** A certificate that was looked at and is of use. */
export interface Credential extends Issued {
  /** Milliseconds since 1970. */
  readonly validFrom: number;
  readonly validTo: number;
}

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

/** Reads a certificate and its key. @throws where they do not belong together, or are none */
export function readPair({ cert, key }: TlsPair, what: string): X509Certificate {
  const certificate = attempt(`${what}.crt`, () => new X509Certificate(cert));
  const privateKey: KeyObject = attempt(`${what}.key`, () => createPrivateKey(key));
  if (!certificate.checkPrivateKey(privateKey)) throw new Error(`${what}.key is not the key of ${what}.crt`);
  return certificate;
}

function issuedBy(certificate: X509Certificate, pem: string): boolean {
  const ca = attempt("ca.crt", () => new X509Certificate(pem));
  return ca.ca && certificate.checkIssued(ca) && certificate.verify(ca.publicKey);
}

interface Expected {
  /** DNS names that it has to be valid for. */
  readonly names: readonly string[];
  /** One of these has to have signed it. */
  readonly authorities: readonly string[];
}

/** Reads a certificate as clients will. @throws where they would refuse it, whatever the time */
export function readCredential(pair: TlsPair, what: string, { names, authorities }: Expected): Credential {
  const certificate = readPair(pair, what);
  const missing = names.find((name) => certificate.checkHost(name) === undefined);
  if (missing !== undefined) throw new Error(`${what}.crt is not valid for ${missing}`);
  const ca = authorities.find((pem) => issuedBy(certificate, pem));
  if (ca === undefined) throw new Error(`${what}.crt is not signed by a certificate in ca.crt`);
  const { validFrom, validTo } = certificate;
  return { ...pair, ca, validFrom: Date.parse(validFrom), validTo: Date.parse(validTo) };
}
