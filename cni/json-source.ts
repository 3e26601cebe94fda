/**
 * Where values stand in the text of a JSON document that is known to be valid. What is handed on unchanged is handed
 * on as text, since parsing would round large numbers.
 */

const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/y;
const SPACE = /[\s,:]*/y;
/** A string, a bracket, or what stands between them. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{}]|[^"[\]{}\s,:]+|[\s,:]+/y;

function matchAt(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  pattern.test(text);
  return pattern.lastIndex;
}

const DEPTH: Readonly<Record<string, number>> = { "{": 1, "[": 1, "}": -1, "]": -1 };

/** The end of the value that begins at `start`: a scalar is one token, a list or an object ends where it began. */
function endOfValue(text: string, start: number): number {
  let depth = 0;
  let at = start;
  do {
    depth += DEPTH[text.charAt(at)] ?? 0;
    at = matchAt(TOKEN, text, at);
  } while (depth > 0 && at > 0);
  return at;
}

/** The text of a member of the document's root object; of several with the same key, the last. */
export function memberSource(document: string, key: string): string | undefined {
  let found: string | undefined;
  for (let at = matchAt(SPACE, document, document.indexOf("{") + 1); document[at] === '"'; ) {
    const keyEnd = matchAt(STRING, document, at);
    const start = matchAt(SPACE, document, keyEnd);
    const end = endOfValue(document, start);
    if (JSON.parse(document.slice(at, keyEnd)) === key) found = document.slice(start, end);
    at = matchAt(SPACE, document, end);
  }
  return found;
}
