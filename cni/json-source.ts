/**
 * Finds values in the text of a valid JSON document. Values that are passed on unchanged stay text, since parsing would
 * round large numbers. The scanner is written by hand: standard input may be large, and a regular expression in the
 * plugin's engine keeps a state for every character.
 */

/** Where a value is in a text. */
export interface Place {
  readonly start: number;
  readonly end: number;
}

/** A member of an object, and where its value is. */
interface Member extends Place {
  readonly key: string;
}

const [QUOTE, BACKSLASH] = [0x22, 0x5c] as const;
/** `{` and `[` are one bit apart, and so are `}` and `]`. */
const [BRACKET_BIT, OPEN, CLOSE] = [0x20, 0x7b, 0x7d] as const;
const [SPACE, COMMA, COLON] = [0x20, 0x2c, 0x3a] as const;

const isBetween = (code: number) => code <= SPACE || code === COMMA || code === COLON;

/** Skips white space, commas and colons. */
function behindSpace(text: string, start: number): number {
  let at = start;
  while (isBetween(text.charCodeAt(at))) at += 1;
  return at;
}

/** A quote after an odd number of backslashes belongs to the string. */
function isEscaped(text: string, at: number): boolean {
  let before = at;
  while (text.charCodeAt(before - 1) === BACKSLASH) before -= 1;
  return (at - before) % 2 === 1;
}

function behindString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end >= 0 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end < 0 ? text.length : end + 1;
}

function behindBrackets(text: string, start: number): number {
  let at = start;
  for (let depth = 0; at < text.length; ) {
    const code = text.charCodeAt(at);
    at = code === QUOTE ? behindString(text, at) : at + 1;
    if ((code | BRACKET_BIT) === OPEN) depth += 1;
    if ((code | BRACKET_BIT) === CLOSE) depth -= 1;
    if (depth === 0) break;
  }
  return at;
}

/** A number, true, false or null. */
function behindScalar(text: string, start: number): number {
  let at = start;
  for (; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (isBetween(code) || (code | BRACKET_BIT) === CLOSE) break;
  }
  return at;
}

function behindValue(text: string, start: number): number {
  const code = text.charCodeAt(start);
  if (code === QUOTE) return behindString(text, start);
  return (code | BRACKET_BIT) === OPEN ? behindBrackets(text, start) : behindScalar(text, start);
}

/** The members of the root object in the order of the text; repeated keys stay. */
export function membersOf(document: string): readonly Member[] {
  const found: Member[] = [];
  for (let at = behindSpace(document, document.indexOf("{") + 1); document.charCodeAt(at) === QUOTE; ) {
    const keyEnd = behindString(document, at);
    const start = behindSpace(document, keyEnd);
    const end = behindValue(document, start);
    found.push({ key: JSON.parse(document.slice(at, keyEnd)), start, end });
    at = behindSpace(document, end);
  }
  return found;
}

/** The items of an array in a text. */
export function itemsOf(text: string, array: Place = { start: 0, end: text.length }): readonly Place[] {
  const found: Place[] = [];
  for (let start = behindSpace(text, array.start + 1); start < array.end - 1; ) {
    const end = behindValue(text, start);
    found.push({ start, end });
    start = behindSpace(text, end);
  }
  return found;
}

const SHORTEST_TOO_LARGE = "1e309".length;

/**
 * How deep a text nests, and whether a number in it is too large for a float64. The text need not be valid JSON.
 */
export function measure(text: string): { readonly depth: number; readonly isTooLarge: boolean } {
  let [depth, level, isTooLarge] = [0, 0, false];
  for (let at = behindSpace(text, 0); at < text.length; at = behindSpace(text, at)) {
    const code = text.charCodeAt(at);
    const isBracket = (code | BRACKET_BIT) === OPEN || (code | BRACKET_BIT) === CLOSE;
    const end = isBracket ? at + 1 : behindValue(text, at);
    if (isBracket) level += (code | BRACKET_BIT) === OPEN ? 1 : -1;
    else if (code !== QUOTE && end - at >= SHORTEST_TOO_LARGE)
      isTooLarge ||= Math.abs(Number(text.slice(at, end))) === Number.POSITIVE_INFINITY;
    depth = Math.max(depth, level);
    at = end;
  }
  return { depth, isTooLarge };
}
