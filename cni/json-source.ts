/**
 * Finds values in the text of a valid JSON document. Values that are passed on unchanged stay text, since parsing would
 * round large numbers. The scanner is written by hand: standard input may be large, and a regular expression in the
 * plugin's engine keeps a state for every character.
 */

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

/** The text of a member of the root object; the last one of repeated keys. */
export function memberSource(document: string, key: string): string | undefined {
  let found: string | undefined;
  for (let at = behindSpace(document, document.indexOf("{") + 1); document.charCodeAt(at) === QUOTE; ) {
    const keyEnd = behindString(document, at);
    const start = behindSpace(document, keyEnd);
    const end = behindValue(document, start);
    if (JSON.parse(document.slice(at, keyEnd)) === key) found = document.slice(start, end);
    at = behindSpace(document, end);
  }
  return found;
}
