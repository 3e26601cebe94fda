/** Keys, signatures, hashes and bytes as of system/crypto.ts, by Node. */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes as randomBuffer,
  randomUUID,
  sign as signBytes,
  X509Certificate,
} from "node:crypto";
import { createSecureContext } from "node:tls";
import type { TlsValidity } from "../../../host/port";

export { randomUUID };

const plain = (buffer: Buffer) => new Uint8Array(buffer);

/** Whether bytes are equal. */
export const equal = (left: Uint8Array, right: Uint8Array): boolean => Buffer.compare(left, right) === 0;

/** The SHA-256 of some bytes: 32 bytes. */
export const sha256 = (bytes: Uint8Array): Uint8Array => plain(createHash("sha256").update(bytes).digest());

/** Cryptographically secure random bytes. */
export const randomBytes = (count: number): Uint8Array => plain(randomBuffer(count));

/** Makes a key of the curve P-256. @returns PKCS#8, PEM */
export function generateKey(): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
}

export function publicKeyOf(key: string): Uint8Array {
  return plain(createPublicKey(createPrivateKey(key)).export({ type: "spki", format: "der" }));
}

export const sign = (key: string, bytes: Uint8Array): Uint8Array => plain(signBytes("sha256", bytes, key));

export function readPair(cert: string, key: string, name: string): TlsValidity {
  // A secure context treats an empty text as absent.
  const read = new X509Certificate(cert);
  createPrivateKey(key);
  createSecureContext({ cert, key });
  const [validFrom, validTo] = [Date.parse(read.validFrom), Date.parse(read.validTo)];
  return { validFrom, validTo, isForName: read.checkHost(name, { subject: "never" }) !== undefined };
}
