/** A half-open range of a text. */
interface Span {
  readonly start: number;
  readonly end: number;
}

/** The position of an array and its items in a JSON text. */
export interface ArrayPlace {
  /** Offset after `[`. */
  readonly open: number;
  /** Offset of `]`. */
  readonly close: number;
  readonly items: readonly Span[];
}

interface Token extends Span {
  readonly text: string;
}

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
const NESTING: Readonly<Record<string, number>> = { "{": 1, "[": 1, "}": -1, "]": -1 };
const END: Token = { text: "", start: -1, end: -1 };

function tokenize(text: string): readonly Token[] {
  return Array.from(text.matchAll(TOKEN), (match) => ({
    text: match[0],
    start: match.index,
    end: match.index + match[0].length,
  }));
}

/** Index of the token after the value that begins at `at`. */
function behind(tokens: readonly Token[], at: number): number {
  let depth = 0;
  let index = at;
  do depth += NESTING[tokens[index++]?.text ?? ""] ?? 0;
  while (depth > 0 && index < tokens.length);
  return index;
}

function items(tokens: readonly Token[], at: number): ArrayPlace {
  const found: Span[] = [];
  let index = at + 1;
  while (index < tokens.length && tokens[index]?.text !== "]") {
    const next = behind(tokens, index);
    found.push({ start: (tokens[index] ?? END).start, end: (tokens[next - 1] ?? END).end });
    index = tokens[next]?.text === "," ? next + 1 : next;
  }
  return { open: (tokens[at] ?? END).end, close: (tokens[index] ?? END).start, items: found };
}

/**
 * Finds the array under a key of the root object. The text must be valid JSON. The last of repeated keys counts, as in
 * JSON.parse and Go.
 */
export function findArray(text: string, key: string): ArrayPlace | undefined {
  const tokens = tokenize(text);
  let found: ArrayPlace | undefined;
  let index = 1;
  while (index < tokens.length && tokens[index]?.text !== "}") {
    const value = index + 2;
    if (JSON.parse(tokens[index]?.text ?? '""') === key) {
      found = tokens[value]?.text === "[" ? items(tokens, value) : undefined;
    }
    const next = behind(tokens, value);
    index = tokens[next]?.text === "," ? next + 1 : next;
  }
  return found;
}
