import { byBytes } from "./go";

/** Keys that a reader expects first; the others follow in alphabetical order. */
const leading = ["apiVersion", "kind", "metadata", "name", "namespace"];

function rank(key: string): number {
  const index = leading.indexOf(key);
  return index < 0 ? leading.length : index;
}

/** The entries of a map in the order in which they are written. */
export function inOrder<T>(map: Readonly<Record<string, T>>): readonly (readonly [string, T])[] {
  return Object.entries(map).sort(([a], [b]) => rank(a) - rank(b) || byBytes(a, b));
}
