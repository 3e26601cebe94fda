/** Keys, signatures, hashes and bytes. */
import { base64 } from "../host/base64";
import { checked } from "../host/errno";
import type { TlsValidity } from "../host/port";
import { host } from "./engine/host";

/** Whether bytes are equal. */
export const equal = (left: Uint8Array, right: Uint8Array): boolean => host.isEqual(left, right);

/** The SHA-256 of some bytes: 32 bytes. */
export const sha256 = (bytes: Uint8Array): Uint8Array => host.hash(bytes, 256);

/** Cryptographically secure random bytes. */
export function randomBytes(count: number): Uint8Array {
  const bytes = new Uint8Array(count);
  for (let at = 0; at < count; ) at += checked("get random bytes", host.getrandom(bytes.subarray(at), 0));
  return bytes;
}

const hex = (bytes: Uint8Array) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** A random name (RFC 9562, version 4). */
export function randomUUID(): `${string}-${string}-${string}-${string}-${string}` {
  const bytes = randomBytes(16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x40;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const [a, b, c, d, e] = [
    [0, 4],
    [4, 6],
    [6, 8],
    [8, 10],
    [10, 16],
  ].map(([from, to]) => hex(bytes.slice(from, to)));
  return `${a}-${b}-${c}-${d}-${e}`;
}

const NUMBER_SIZE = 32;
/** PrivateKeyInfo (RFC 5208) with an ECPrivateKey (RFC 5915) of P-256, around its number and its point. */
const BEFORE_NUMBER = [
  0x30, 0x81, 0x87, 0x02, 0x01, 0x00, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08,
  0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x04, 0x6d, 0x30, 0x6b, 0x02, 0x01, 0x01, 0x04, 0x20,
];
const BEFORE_POINT = [0xa1, 0x44, 0x03, 0x42, 0x00];

/** Makes a key of the curve P-256. @returns PKCS#8, PEM */
export function generateKey(): string {
  const made = host.keyGenerate();
  const [number, point] = [made.subarray(0, NUMBER_SIZE), made.subarray(NUMBER_SIZE)];
  const lines = base64(Uint8Array.of(...BEFORE_NUMBER, ...number, ...BEFORE_POINT, ...point)).match(/.{1,64}/g) ?? [];
  return ["-----BEGIN PRIVATE KEY-----", ...lines, "-----END PRIVATE KEY-----", ""].join("\n");
}

/**
 * The public key of a private key (PEM: PKCS#8, or the older forms `EC PRIVATE KEY` and `RSA PRIVATE KEY`).
 * @returns SubjectPublicKeyInfo, DER
 * @throws TypeError if the key cannot be read; the message does not quote it
 */
export const publicKeyOf = (key: string): Uint8Array => host.keyPublic(key);

/**
 * Signs the SHA-256 of some bytes. @param key PEM, as for `publicKeyOf` @returns ECDSA (DER) or RSA (PKCS#1 v1.5),
 * depending on the key
 * @throws TypeError if the key cannot be read; the message does not quote it
 */
export const sign = (key: string, bytes: Uint8Array): Uint8Array => host.keySign(key, bytes, 256);

/**
 * Reads a certificate and its key as a TLS server does.
 * @param cert PEM: the certificate, then those that lead from it to the authority
 * @param key PEM, as for `publicKeyOf`
 * @param name DNS name that the certificate may be for
 * @throws if a server cannot use them, in the TLS library's words; the message does not quote the key
 */
export function readPair(cert: string, key: string, name: string): TlsValidity {
  const made = host.tlsServer(cert, key);
  if (typeof made === "string") throw new Error(made);
  return host.tlsValidity(made, name);
}
