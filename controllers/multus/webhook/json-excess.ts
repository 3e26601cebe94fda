const QUOTE = 34;
const BACKSLASH = 92;
/**
 * A part is a value or a key. A part of seven bytes takes up to 200 bytes when parsed; a large pod has some thousands.
 */
const MOST_PARTS = 100_000;
/** Real pods have about ten levels. */
const MOST_LEVELS = 100;

/** The index of the quote that ends a string, or the end of the bytes. */
function endOfString(bytes: Uint8Array, start: number): number {
  for (let from = start; ; ) {
    const quote = bytes.indexOf(QUOTE, from);
    if (quote < 0) return bytes.length;
    let escapes = quote;
    while (escapes > start && bytes[escapes - 1] === BACKSLASH) escapes -= 1;
    if ((quote - escapes) % 2 === 0) return quote;
    from = quote + 1;
  }
}

/**
 * Why a JSON text would need too much memory when parsed; undefined if it would not, or if it is not JSON. Parsing a
 * text of `[` needs eighty times its size. Strings are skipped quickly.
 */
export function jsonExcess(bytes: Uint8Array): string | undefined {
  let parts = 0;
  let levels = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    switch (bytes[at]) {
      case QUOTE:
        at = endOfString(bytes, at + 1);
        break;
      case 0x5b: // [
      case 0x7b: // {
        parts += 1;
        levels += 1;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        levels -= 1;
        break;
      case 0x2c: // ,
      case 0x3a: // :
        parts += 1;
        break;
    }
    if (levels > MOST_LEVELS) return `is nested deeper than ${MOST_LEVELS} levels`;
    if (parts > MOST_PARTS) return `has more than ${MOST_PARTS} keys and values`;
  }
  return undefined;
}
