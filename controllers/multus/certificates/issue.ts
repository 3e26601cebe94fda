/** Makes a self-signed certificate (RFC 5280). */
import { base64 } from "../../../host/base64";
import { ascii, hex } from "../../../host/bytes";
import { element, identifier, Tag } from "../../../host/der";
import { Extension } from "../../../host/x509";
import { generateKey, publicKeyOf, randomBytes, sign } from "../../../system/crypto";
import type { TlsPair } from "../../../system/net";

const HOUR_MS = 3_600_000;

const sequence = (...parts: readonly Uint8Array[]) => element(Tag.sequence, ...parts);
/** A bit string with `unused` bits at its end. */
const bits = (unused: number, ...bytes: readonly Uint8Array[]) => element(Tag.bits, Uint8Array.of(unused), ...bytes);
const TRUE = element(Tag.boolean, Uint8Array.of(0xff));

/** ecdsa-with-SHA256. */
const SIGNATURE = sequence(identifier("2a8648ce3d040302"));
const COMMON_NAME = identifier("550403");
const SERVER_AUTHENTICATION = identifier("2b06010505070301");

const named = (name: string) => sequence(element(Tag.set, sequence(COMMON_NAME, element(Tag.utf8, ascii(name)))));

/** Years from 2050 on are GeneralizedTime (RFC 5280, section 4.1.2.5). */
function time(ms: number): Uint8Array {
  const digits = new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, "");
  return digits < "2050" ? element(Tag.utcTime, ascii(digits.slice(2))) : element(Tag.generalizedTime, ascii(digits));
}

/** It begins a little earlier, for clients whose clocks are slow. Certificates count in seconds. */
const validity = (now: Date, validMs: number) =>
  sequence(time(now.getTime() - Math.min(HOUR_MS, validMs / 10)), time(now.getTime() + validMs));

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

/** Makes a server's self-signed certificate for some DNS names: clients that trust it need no authority. */
export function issueCertificate(names: readonly string[], now: Date, validMs: number): TlsPair {
  const key = generateKey();
  // Unique, so that clients that trust two of them tell them apart.
  const subject = named(`linkerd-multus ${hex(randomBytes(8))}`);
  const signed = sequence(
    element(Tag.version, element(Tag.integer, Uint8Array.of(2))),
    serialNumber(),
    SIGNATURE,
    subject,
    validity(now, validMs),
    subject,
    publicKeyOf(key),
    element(
      Tag.extensions,
      sequence(
        critical(Extension.basicConstraints, sequence()),
        // digitalSignature.
        critical(Extension.keyUsage, bits(7, Uint8Array.of(0x80))),
        extension(Extension.purposes, sequence(SERVER_AUTHENTICATION)),
        extension(Extension.alternativeNames, sequence(...names.map((name) => element(0x82, ascii(name))))),
      ),
    ),
  );
  return { cert: pemOf(sequence(signed, SIGNATURE, bits(0, sign(key, signed)))), key };
}
