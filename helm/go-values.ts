/** Go's templates, JSON encoder and Helm's functions, as far as they differ from JavaScript. */

/** Whether `if`, `with`, `and`, `or`, `not` and `default` regard a value as true. */
export function isTrue(value: unknown): boolean {
  if (value === undefined || value === null) return false;
  if (Array.isArray(value)) return value.length > 0;
  if (typeof value === "object") return Object.keys(value).length > 0;
  return Boolean(value);
}

/** Characters that Go's JSON encoder escapes and JavaScript's does not. */
const escaped = /[<>&\u2028\u2029]/g;

function escapeJson(text: string): string {
  return text.replace(escaped, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Go sorts the keys of a map by their UTF-8 bytes. */
export function byBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  return Object.fromEntries(entries.sort(([a], [b]) => byBytes(a, b)).map(([key, item]) => [key, sorted(item)]));
}

/** `toJson`. */
export function toJson(value: unknown): string {
  return escapeJson(JSON.stringify(sorted(value)));
}

/** `toPrettyJson`. */
export function toPrettyJson(value: unknown): string {
  return escapeJson(JSON.stringify(sorted(value), undefined, 2));
}

/** `toString`. */
export function toText(value: unknown): string {
  return value === undefined || value === null ? "" : String(value);
}

/** `merge` into an empty dict: the first value of a key wins, unless it is empty. */
export function merge(maps: readonly Readonly<Record<string, unknown>>[]): Record<string, unknown> {
  const result = new Map<string, unknown>();
  for (const [key, value] of maps.flatMap((map) => Object.entries(map))) {
    if (!isTrue(result.get(key))) result.set(key, value);
  }
  return Object.fromEntries(result);
}
