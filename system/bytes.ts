/** Bytes as texts and the other way round. */

const encoder = new TextEncoder();
/** What looks like a byte order mark is part of the text. */
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** The UTF-8 of a text; what is not well-formed becomes U+FFFD. */
export const utf8 = (text: string): Uint8Array => encoder.encode(text);

/** The text that stands in UTF-8; what is none becomes U+FFFD. */
export const textOf = (bytes: Uint8Array): string => decoder.decode(bytes);

/** Whether bytes are the same. */
export function equal(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, at) => byte === right[at]);
}

export { hex } from "../host/bytes";

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** In base64, padded. */
export function base64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 3) {
    const [one = 0, two = 0, three = 0] = bytes.subarray(at, at + 3);
    const bits = (one << 16) | (two << 8) | three;
    for (const shift of [18, 12, 6, 0]) text += ALPHABET[(bits >> shift) & 63];
  }
  const padding = (3 - (bytes.length % 3)) % 3;
  return text.slice(0, text.length - padding) + "=".repeat(padding);
}

/** What stands in either alphabet of base64, padded or not, with line breaks or without. @throws where it is none */
export function fromBase64(text: string): Uint8Array {
  const digits = text.replace(/[\r\n]/g, "").replace(/={0,2}$/, "");
  const bytes = new Uint8Array(Math.floor((digits.length * 3) / 4));
  let bits = 0;
  let filled = 0;
  let at = 0;
  for (const digit of digits) {
    const value = ALPHABET.indexOf(digit === "-" ? "+" : digit === "_" ? "/" : digit);
    if (value < 0) throw new Error("not base64");
    bits = ((bits << 6) | value) & 0xffff;
    filled += 6;
    if (filled >= 8) {
      filled -= 8;
      bytes[at++] = bits >> filled;
    }
  }
  if (digits.length % 4 === 1) throw new Error("not base64");
  return bytes;
}
