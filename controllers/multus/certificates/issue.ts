/** Makes certificates (RFC 5280). */
import { base64 } from "../../../host/base64";
import { ascii, hex } from "../../../host/bytes";
import { element, elements, identifier, inside, malformed, Tag } from "../../../host/der";
import { Extension } from "../../../host/x509";
import { generateKey, publicKeyOf, randomBytes, sign } from "../../../system/crypto";
import type { Authority, TlsPair } from "./certificate";
import { readCertificate, type Validity } from "./x509";

const HOUR_MS = 3_600_000;

/**
 * A new certificate's validity begins a little earlier, for clients whose clocks are slow. Certificates count in
 * seconds.
 */
function validity(now: Date, validMs: number): Validity {
  const second = (ms: number) => Math.floor(ms / 1000) * 1000;
  return {
    validFrom: second(now.getTime() - Math.min(HOUR_MS, validMs / 10)),
    validTo: second(now.getTime() + validMs),
  };
}

const sequence = (...parts: readonly Uint8Array[]) => element(Tag.sequence, ...parts);
/** A bit string with `unused` bits at its end. */
const bits = (unused: number, ...bytes: readonly Uint8Array[]) => element(Tag.bits, Uint8Array.of(unused), ...bytes);
const TRUE = element(Tag.boolean, Uint8Array.of(0xff));

/** An authority's signature algorithm, by the type of its public key. */
const SIGNATURES: Readonly<Record<string, Uint8Array>> = {
  // id-ecPublicKey: ecdsa-with-SHA256.
  "2a8648ce3d0201": sequence(identifier("2a8648ce3d040302")),
  // rsaEncryption: sha256WithRSAEncryption, whose parameters are null.
  "2a864886f70d010101": sequence(identifier("2a864886f70d01010b"), element(Tag.null)),
};

/** @param publicKey SubjectPublicKeyInfo, DER */
function signatureBy(publicKey: Uint8Array): Uint8Array {
  const [algorithm] = inside(publicKey, "a public key");
  const [kind] = elements(algorithm?.body ?? malformed("a public key"));
  const signature = SIGNATURES[hex(kind?.body ?? malformed("a public key"))];
  if (signature === undefined) throw new Error("the authority's key is neither EC nor RSA");
  return signature;
}

const COMMON_NAME = identifier("550403");
const SERVER_AUTHENTICATION = identifier("2b06010505070301");

/** A name has at most 64 characters (RFC 5280, appendix A.1). */
const named = (name: string) =>
  sequence(element(Tag.set, sequence(COMMON_NAME, element(Tag.utf8, ascii(name.slice(0, 64))))));

/** Years from 2050 on are GeneralizedTime (RFC 5280, section 4.1.2.5). */
function time(ms: number): Uint8Array {
  const digits = new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, "");
  return digits < "2050" ? element(Tag.utcTime, ascii(digits.slice(2))) : element(Tag.generalizedTime, ascii(digits));
}

/** Positive, and of 16 bytes. */
function serialNumber(): Uint8Array {
  const [first = 0, ...rest] = randomBytes(16);
  return element(Tag.integer, Uint8Array.of((first & 0x3f) | 0x40, ...rest));
}

const extension = (id: string, value: Uint8Array) => sequence(identifier(id), element(Tag.octets, value));
const critical = (id: string, value: Uint8Array) => sequence(identifier(id), TRUE, element(Tag.octets, value));

function pemOf(der: Uint8Array): string {
  const lines = base64(der).match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
}

interface Contents extends Validity {
  readonly issuer: Uint8Array;
  readonly subject: Uint8Array;
  readonly extensions: readonly Uint8Array[];
}

/**
 * @param key of the certificate
 * @param signer key of the issuer
 */
function certificate(key: string, signer: string, { issuer, subject, extensions, ...valid }: Contents): string {
  const algorithm = signatureBy(publicKeyOf(signer));
  const signed = sequence(
    element(Tag.version, element(Tag.integer, Uint8Array.of(2))),
    serialNumber(),
    algorithm,
    issuer,
    sequence(time(valid.validFrom), time(valid.validTo)),
    subject,
    publicKeyOf(key),
    element(Tag.extensions, sequence(...extensions)),
  );
  return pemOf(sequence(signed, algorithm, bits(0, sign(signer, signed))));
}

/** Makes a self-signed certificate authority. */
export function createAuthority(now: Date, validMs: number): Authority {
  const key = generateKey();
  const valid = validity(now, validMs);
  // Each authority has a unique name, so that a chain leads to only one of several.
  const name = named(`linkerd-multus ${hex(randomBytes(8))}`);
  const cert = certificate(key, key, {
    ...valid,
    issuer: name,
    subject: name,
    extensions: [
      // An authority that cannot sign other authorities.
      critical(Extension.basicConstraints, sequence(TRUE, element(Tag.integer, Uint8Array.of(0)))),
      // keyCertSign.
      critical(Extension.keyUsage, bits(2, Uint8Array.of(0x04))),
    ],
  });
  return { cert, key, ...valid };
}

/** Makes a server's certificate for some DNS names, signed by an authority. */
export function issueCertificate(
  names: readonly string[],
  by: Pick<Authority, "cert" | "key">,
  now: Date,
  validMs: number,
): TlsPair {
  const key = generateKey();
  const cert = certificate(key, by.key, {
    ...validity(now, validMs),
    issuer: readCertificate(by.cert).subject,
    subject: named(names[0] ?? ""),
    extensions: [
      critical(Extension.basicConstraints, sequence()),
      // digitalSignature.
      critical(Extension.keyUsage, bits(7, Uint8Array.of(0x80))),
      extension(Extension.purposes, sequence(SERVER_AUTHENTICATION)),
      extension(Extension.alternativeNames, sequence(...names.map((name) => element(0x82, ascii(name))))),
    ],
  });
  return { cert, key };
}
