/** DER, the binary form of certificates and keys (X.690). */
import { concat } from "./bytes";

/** One parsed element. */
export interface Element {
  readonly tag: number;
  readonly body: Uint8Array;
  /** Including tag and length. */
  readonly whole: Uint8Array;
}

export const Tag = {
  boolean: 0x01,
  integer: 0x02,
  bits: 0x03,
  octets: 0x04,
  null: 0x05,
  oid: 0x06,
  utf8: 0x0c,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
  version: 0xa0,
  extensions: 0xa3,
} as const;

/** @throws Error that says what is malformed */
export const malformed = (what: string): never => {
  throw new Error(`${what} is malformed`);
};

/** Consecutive elements. @throws Error if they are incomplete */
export function elements(bytes: Uint8Array, what = "a certificate"): readonly Element[] {
  const found: Element[] = [];
  for (let at = 0; at < bytes.length; ) {
    const tag = bytes[at] as number;
    let length = bytes[at + 1] ?? malformed(what);
    let begin = at + 2;
    if (length > 0x80) {
      const digits = length & 0x7f;
      if (digits > 3) malformed(what);
      length = 0;
      for (let digit = 0; digit < digits; digit++) length = (length << 8) | (bytes[begin++] ?? malformed(what));
    } else if (length === 0x80) malformed(what);
    const end = begin + length;
    if (end > bytes.length || (tag & 0x1f) === 0x1f) malformed(what);
    found.push({ tag, body: bytes.subarray(begin, end), whole: bytes.subarray(at, end) });
    at = end;
  }
  return found;
}

/** The elements of a sequence that must be the only element. */
export function inside(bytes: Uint8Array, what: string): readonly Element[] {
  const [outer] = elements(bytes, what);
  return outer?.tag === Tag.sequence ? elements(outer.body, what) : malformed(what);
}

/** Writes one element; its body is the concatenation of the parts, at most 65535 bytes. */
export function element(tag: number, ...parts: readonly Uint8Array[]): Uint8Array {
  const body = concat(parts);
  const { length } = body;
  const digits = length < 0x80 ? [] : length < 0x100 ? [0x81] : [0x82, length >> 8];
  return concat([Uint8Array.of(tag, ...digits, length & 0xff), body]);
}

/** Writes an object identifier of these bytes, in hexadecimal digits. */
export const identifier = (digits: string) =>
  element(
    Tag.oid,
    Uint8Array.from(digits.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16)),
  );
