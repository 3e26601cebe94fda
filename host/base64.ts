const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const letter = (bits: number) => ALPHABET.charAt(bits & 0x3f);

/** Bytes in base64, padded. */
export function base64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 3) {
    const [first = 0, second, third] = [bytes[at], bytes[at + 1], bytes[at + 2]];
    const bits = (first << 16) | ((second ?? 0) << 8) | (third ?? 0);
    text += letter(bits >> 18) + letter(bits >> 12);
    text += second === undefined ? "=" : letter(bits >> 6);
    text += third === undefined ? "=" : letter(bits);
  }
  return text;
}

/** The value of a character; -1 if it is not base64. */
function digit(code: number): number {
  if (code >= 0x41 && code <= 0x5a) return code - 0x41;
  if (code >= 0x61 && code <= 0x7a) return code - 0x61 + 26;
  if (code >= 0x30 && code <= 0x39) return code - 0x30 + 52;
  if (code === 0x2b) return 62;
  return code === 0x2f ? 63 : -1;
}

/** Decodes base64, padded or not, and ignores white space. @throws Error that does not quote the text */
export function fromBase64(text: string): Uint8Array {
  const digits = text.replace(/\s+/g, "");
  const padding = /={0,2}$/.exec(digits)?.[0].length ?? 0;
  const count = digits.length - padding;
  if (count % 4 === 1 || (padding > 0 && digits.length % 4 !== 0)) throw new Error("it is not base64");
  const bytes = new Uint8Array(Math.floor((count * 3) / 4));
  let [bits, left, at] = [0, 0, 0];
  for (let each = 0; each < count; each++) {
    const value = digit(digits.charCodeAt(each));
    if (value < 0) throw new Error("it is not base64");
    bits = ((bits << 6) | value) & 0xffff;
    left += 6;
    if (left < 8) continue;
    left -= 8;
    bytes[at++] = bits >> left;
  }
  return bytes;
}
