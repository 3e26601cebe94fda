/** X.509 certificates of any shape, the wrong ones too: written as DER (RFC 5280) and signed by node:crypto. */
import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { isIP } from "node:net";

type KeyKind = "rsa" | "rsa-1024" | "P-256" | "P-384" | "P-521" | "Ed25519";

/** A certificate with its key. */
export interface Issued {
  /** PEM. */
  readonly cert: string;
  /** PEM, PKCS#8. */
  readonly key: string;
  readonly subject: string;
}

export interface CertificateOptions {
  /** Common name of the subject, which is an empty name without one. */
  readonly subject: string;
  /** Who signs it. @default itself */
  readonly by?: Issued;
  /** @default "P-256" */
  readonly key?: KeyKind;
  /** Subject alternative names: an address becomes an iPAddress, everything else a dNSName. */
  readonly names?: readonly string[];
  /** An address that is written as a dNSName. */
  readonly dnsNames?: readonly string[];
  /** basicConstraints cA and the key usage of an authority. @default false */
  readonly isAuthority?: boolean;
  /** The extended key usage. @default none is stated */
  readonly purpose?: "serverAuth" | "clientAuth";
  /** Name constraints: addresses with a prefix's length, everything else DNS names. */
  readonly constraints?: { readonly permitted?: readonly string[]; readonly excluded?: readonly string[] };
  readonly constraintsAreCritical?: boolean;
  /** Adds a policy, constraints on policies that need one, and inhibitAnyPolicy, all critical. */
  readonly hasPolicies?: boolean;
  /** Adds an unknown critical extension. */
  readonly hasUnknownExtension?: boolean;
  /** @default "sha256" */
  readonly hash?: "sha1" | "sha256" | "sha384";
  /** Days from today. @default -1 */
  readonly fromDay?: number;
  /** Days from today. @default 30 */
  readonly toDay?: number;
}

function tlv(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  if (length < 0x80) return Buffer.concat([Buffer.of(tag, length), content]);
  const digits = length < 0x100 ? [length] : [length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, 0x80 | digits.length, ...digits), content]);
}

const sequence = (...parts: readonly Buffer[]) => tlv(0x30, ...parts);
const integer = (value: Buffer) => tlv(0x02, value);
const octets = (value: Buffer) => tlv(0x04, value);
const bits = (value: Buffer) => tlv(0x03, Buffer.of(0), value);
const TRUE = tlv(0x01, Buffer.of(0xff));
const NULL = tlv(0x05);

function oid(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split(".").map(Number);
  const base128 = (value: number): number[] => {
    const digits = [value & 0x7f];
    for (let left = value >>> 7; left > 0; left >>>= 7) digits.unshift((left & 0x7f) | 0x80);
    return digits;
  };
  return tlv(0x06, Buffer.from([first * 40 + second, ...rest].flatMap(base128)));
}

/** Name of one common name, or an empty name. */
const nameOf = (commonName: string) =>
  commonName === "" ? sequence() : sequence(tlv(0x31, sequence(oid("2.5.4.3"), tlv(0x0c, Buffer.from(commonName)))));

const DAY_MS = 86_400_000;

/** GeneralizedTime is for 2050 and later, UTCTime for everything before. */
function time(day: number): Buffer {
  const digits = new Date(Date.now() + day * DAY_MS).toISOString().replace(/[-:T]|\.\d+/g, "");
  return digits < "2050" ? tlv(0x17, Buffer.from(digits.slice(2))) : tlv(0x18, Buffer.from(digits));
}

function extension(id: string, value: Buffer, isCritical = false): Buffer {
  return sequence(oid(id), ...(isCritical ? [TRUE] : []), octets(value));
}

function addressBytes(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split(".").map(Number));
  const { hostname } = new URL(`http://[${address}]`);
  const [head = "", tail] = hostname.slice(1, -1).split("::");
  const groups = (text: string | undefined) => (text === undefined || text === "" ? [] : text.split(":"));
  const filled = [...groups(head), ...Array(8 - groups(head).length - groups(tail).length).fill("0"), ...groups(tail)];
  return Buffer.from(filled.map((group: string) => group.padStart(4, "0")).join(""), "hex");
}

function extensions(options: CertificateOptions): Buffer {
  const { names = [], dnsNames = [], isAuthority = false, purpose, hasUnknownExtension = false } = options;
  const all = [extension("2.5.29.19", sequence(...(isAuthority ? [TRUE] : [])), true)];
  // digitalSignature, and keyCertSign or keyEncipherment.
  all.push(extension("2.5.29.15", tlv(0x03, isAuthority ? Buffer.of(2, 0x84) : Buffer.of(5, 0xa0)), true));
  if (purpose !== undefined) {
    all.push(extension("2.5.29.37", sequence(oid(`1.3.6.1.5.5.7.3.${purpose === "serverAuth" ? 1 : 2}`))));
  }
  const dns = (name: string) => tlv(0x82, Buffer.from(name));
  const general = [...names.map((name) => (isIP(name) === 0 ? dns(name) : tlv(0x87, addressBytes(name))))];
  general.push(...dnsNames.map(dns));
  if (general.length > 0) all.push(extension("2.5.29.17", sequence(...general)));
  const { constraints, constraintsAreCritical = false, hasPolicies = false } = options;
  if (constraints !== undefined) {
    const subtrees = (bases: readonly string[] = []) =>
      bases.map((base) => {
        const [address = "", prefix] = base.split("/");
        const mask = Buffer.alloc(4);
        if (prefix !== undefined) mask.writeUInt32BE(Number((0xffffffffn << (32n - BigInt(prefix))) & 0xffffffffn));
        return sequence(prefix === undefined ? dns(base) : tlv(0x87, addressBytes(address), mask));
      });
    const lists = [
      ...(constraints.permitted === undefined ? [] : [tlv(0xa0, ...subtrees(constraints.permitted))]),
      ...(constraints.excluded === undefined ? [] : [tlv(0xa1, ...subtrees(constraints.excluded))]),
    ];
    all.push(extension("2.5.29.30", sequence(...lists), constraintsAreCritical));
  }
  if (hasPolicies) {
    all.push(extension("2.5.29.32", sequence(sequence(oid("1.2.3.4"))), true));
    if (isAuthority) all.push(extension("2.5.29.36", sequence(tlv(0x80, Buffer.of(0))), true));
    if (isAuthority) all.push(extension("2.5.29.54", integer(Buffer.of(0)), true));
  }
  if (hasUnknownExtension) all.push(extension("1.2.3.4.5", NULL, true));
  return tlv(0xa3, sequence(...all));
}

function newKey(kind: KeyKind): { readonly privateKey: KeyObject; readonly publicKey: KeyObject } {
  if (kind.startsWith("rsa")) return generateKeyPairSync("rsa", { modulusLength: kind === "rsa" ? 2048 : 1024 });
  return kind === "Ed25519" ? generateKeyPairSync("ed25519") : generateKeyPairSync("ec", { namedCurve: kind });
}

type Hash = NonNullable<CertificateOptions["hash"]>;
const SIGNATURES: Readonly<Record<string, Readonly<Record<Hash, string>>>> = {
  rsa: { sha1: "1.2.840.113549.1.1.5", sha256: "1.2.840.113549.1.1.11", sha384: "1.2.840.113549.1.1.12" },
  ec: { sha1: "1.2.840.10045.4.1", sha256: "1.2.840.10045.4.3.2", sha384: "1.2.840.10045.4.3.3" },
  ed25519: { sha1: "1.3.101.112", sha256: "1.3.101.112", sha384: "1.3.101.112" },
};

export function pem(label: string, der: Buffer): string {
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}

/** Makes a key, and a certificate for it. */
export function certificate(options: CertificateOptions): Issued {
  const { subject, by, key = "P-256", hash = "sha256", fromDay = -1, toDay = 30 } = options;
  const { privateKey, publicKey } = newKey(key);
  const signer = by === undefined ? privateKey : createPrivateKey(by.key);
  const kind = signer.asymmetricKeyType ?? "";
  const algorithm = sequence(oid(SIGNATURES[kind]?.[hash] ?? ""), ...(kind === "rsa" ? [NULL] : []));
  const serial = randomBytes(16);
  serial[0] = 0x40;
  const body = sequence(
    tlv(0xa0, integer(Buffer.of(2))),
    integer(serial),
    algorithm,
    nameOf(by?.subject ?? subject),
    sequence(time(fromDay), time(toDay)),
    nameOf(subject),
    publicKey.export({ type: "spki", format: "der" }),
    extensions(options),
  );
  const signature = sign(kind === "ed25519" ? null : hash, body, signer);
  const cert = pem("CERTIFICATE", sequence(body, algorithm, bits(signature)));
  return { cert, key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(), subject };
}

/** An authority that signs others. */
export const authority = (subject: string, changes: Partial<CertificateOptions> = {}) =>
  certificate({ subject, isAuthority: true, ...changes });
