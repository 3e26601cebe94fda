/** Certificates as clients read them: RFC 5280, as in Go's crypto/x509, which the API server uses. */
import { fromBase64 } from "../../../host/base64";
import { type Element, elements, inside, malformed, Tag } from "../../../host/der";
import { certificateParts, Extension } from "../../../host/x509";
import { equal } from "../../../system/bytes";
import { type Hash, verify } from "../../../system/crypto";

/** A period of validity, in milliseconds since 1970. */
export interface Validity {
  readonly validFrom: number;
  readonly validTo: number;
}

export interface X509 extends Validity {
  readonly der: Uint8Array;
  /** The signed bytes. */
  readonly signed: Uint8Array;
  readonly issuer: Uint8Array;
  readonly subject: Uint8Array;
  /** SubjectPublicKeyInfo, DER. */
  readonly publicKey: Uint8Array;
  /** Whether it may sign others. */
  readonly isAuthority: boolean;
  readonly dnsNames: readonly string[];
  /** The signature's algorithm: its identifier in hexadecimal digits. */
  readonly algorithm: string;
  readonly signature: Uint8Array;
}

const WHAT = "the certificate";
/** Maximum length in characters of PEM; real certificates have few KiB. */
const LONGEST = 100_000;
const PEM = /-----BEGIN CERTIFICATE-----([^-]+)-----END CERTIFICATE-----/;

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

/**
 * Whether the basic constraints mark it as an authority, and the key usage, if present, allows signing certificates.
 */
function maySign(constraints: Uint8Array | undefined, usage: Uint8Array | undefined): boolean {
  if (constraints === undefined) return false;
  const [isAuthority] = inside(constraints, WHAT);
  if (isAuthority?.tag !== Tag.boolean || isAuthority.body[0] === 0) return false;
  // keyCertSign is the sixth bit, after the count of unused bits.
  return usage === undefined || ((elements(usage, WHAT)[0]?.body[1] ?? 0) & 0x04) !== 0;
}

const DNS_NAME = 0x82;

/** Reads the first certificate in a text. @param text PEM @throws Error without a readable certificate */
export function readCertificate(text: string): X509 {
  const [pem = "", base64 = ""] = PEM.exec(text) ?? [];
  if (pem === "") throw new Error("no certificate in PEM form");
  if (pem.length > LONGEST) throw new Error(`${WHAT} is too long: ${pem.length} characters`);
  const der = fromBase64(base64);
  const { extensions, validity, ...parts } = certificateParts(der);
  const extension = (id: string) => extensions.find((each) => each.id === id)?.value;
  const names = extension(Extension.alternativeNames);
  return {
    ...parts,
    der,
    validFrom: timeOf(validity[0]),
    validTo: timeOf(validity[1]),
    isAuthority: maySign(extension(Extension.basicConstraints), extension(Extension.keyUsage)),
    dnsNames: (names === undefined ? [] : inside(names, WHAT))
      .filter(({ tag }) => tag === DNS_NAME)
      .map(({ body }) => ascii(body)),
  };
}

/** Whether it is valid for a DNS name. The API server ignores the common name. */
export function isFor({ dnsNames }: X509, name: string): boolean {
  const labels = name.toLowerCase().split(".");
  return dnsNames.some((pattern) => {
    const wanted = pattern.toLowerCase().split(".");
    // A wildcard matches the whole first label.
    return (
      wanted.length === labels.length && wanted.every((each, at) => each === labels[at] || (at === 0 && each === "*"))
    );
  });
}

/** Hashes by the identifier of a signature's algorithm: RSA (PKCS#1 v1.5) and ECDSA. */
const HASHES: Readonly<Record<string, Hash>> = {
  "2a864886f70d01010b": "sha256",
  "2a864886f70d01010c": "sha384",
  "2a864886f70d01010d": "sha512",
  "2a8648ce3d040302": "sha256",
  "2a8648ce3d040303": "sha384",
  "2a8648ce3d040304": "sha512",
};

/** Whether an authority has signed a certificate. */
export function isIssuedBy({ issuer, algorithm, signed, signature }: X509, by: X509): boolean {
  const hash = HASHES[algorithm];
  if (!by.isAuthority || hash === undefined || !equal(issuer, by.subject)) return false;
  return verify(by.publicKey, signed, signature, hash);
}
