/** Certificates as clients read them: RFC 5280, as in Go's crypto/x509, which the API server uses. */
import { fromBase64 } from "../../../host/base64";
import { type Element, inside, malformed, Tag } from "../../../host/der";
import { certificateParts, Extension } from "../../../host/x509";
import { equal } from "../../../system/bytes";
import { pairProblem, publicKeyOf } from "../../../system/crypto";

/** A served certificate with its key. */
export interface TlsPair {
  /** PEM; the certificate first, then any intermediate certificates. */
  readonly cert: string;
  /** PEM. */
  readonly key: string;
}

/** What a certificate is valid for. */
interface Certificate {
  /** In milliseconds since 1970. */
  readonly validFrom: number;
  /** In milliseconds since 1970. */
  readonly validTo: number;
  readonly dnsNames: readonly string[];
  /** SubjectPublicKeyInfo, DER. */
  readonly publicKey: Uint8Array;
}

const WHAT = "the certificate";
/** Maximum length in characters of PEM; real certificates have few KiB. */
const LONGEST = 100_000;
const PEM = /-----BEGIN CERTIFICATE-----([^-]+)-----END CERTIFICATE-----/;
const DNS_NAME = 0x82;

/** Splits a text into its certificates. */
export const splitCertificates = (text: string): readonly string[] =>
  (text.match(new RegExp(PEM, "g")) ?? []).map((pem) => `${pem}\n`);

const ascii = (bytes: Uint8Array) => Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");

/** UTCTime is of the years 1950 to 2049 (RFC 5280, section 4.1.2.5). */
function timeOf(element: Element | undefined): number {
  const { tag, body } = element ?? malformed(WHAT);
  const text = ascii(body);
  const digits = tag === Tag.utcTime ? `${text < "50" ? 20 : 19}${text}` : text;
  const isKnown = tag === Tag.utcTime || tag === Tag.generalizedTime;
  if (!isKnown || !/^\d{14}Z$/.test(digits)) return malformed(WHAT);
  const iso = digits.replace(/(....)(..)(..)(..)(..)(..)Z/, "$1-$2-$3T$4:$5:$6.000Z");
  const time = Date.parse(iso);
  return Number.isFinite(time) && new Date(time).toISOString() === iso ? time : malformed(WHAT);
}

/** Reads the first certificate in a text. @param text PEM @throws Error without a readable certificate */
export function readCertificate(text: string): Certificate {
  const [pem = "", base64 = ""] = PEM.exec(text) ?? [];
  if (pem === "") throw new Error("no certificate in PEM form");
  if (pem.length > LONGEST) throw new Error(`${WHAT} is too long: ${pem.length} characters`);
  const { extensions, validity, publicKey } = certificateParts(fromBase64(base64));
  const names = extensions.find(({ id }) => id === Extension.alternativeNames)?.value;
  return {
    validFrom: timeOf(validity[0]),
    validTo: timeOf(validity[1]),
    dnsNames: (names === undefined ? [] : inside(names, WHAT))
      .filter(({ tag }) => tag === DNS_NAME)
      .map(({ body }) => ascii(body)),
    publicKey,
  };
}

/** Whether it is valid for a DNS name. The API server ignores the common name. */
export function isFor({ dnsNames }: Certificate, name: string): boolean {
  const labels = name.toLowerCase().split(".");
  return dnsNames.some((pattern) => {
    const wanted = pattern.toLowerCase().split(".");
    // A wildcard matches the whole first label.
    return (
      wanted.length === labels.length && wanted.every((each, at) => each === labels[at] || (at === 0 && each === "*"))
    );
  });
}

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
export function readPair({ cert, key }: TlsPair, what: string): Certificate {
  const certificate = attempt(`${what}.crt`, () => readCertificate(cert));
  const publicKey = attempt(`${what}.key`, () => readPublicKey(key));
  if (!equal(publicKey, certificate.publicKey)) throw new Error(`${what}.key is not the key of ${what}.crt`);
  // Read as a server does, with the intermediate certificates.
  const problem = pairProblem(cert, key);
  if (problem !== undefined) throw new Error(`${what}.crt and ${what}.key: ${problem}`);
  return certificate;
}
