import { stringify } from "yaml";
import { byBytes } from "./go-values";

/** Keys that readers expect first; the others follow in alphabetical order. */
const leading = ["apiVersion", "kind", "metadata", "name", "namespace"];

function rank(key: string): number {
  const index = leading.indexOf(key);
  return index < 0 ? leading.length : index;
}

/** The entries of a map in output order. */
export function inOrder<T>(map: Readonly<Record<string, T>>): readonly (readonly [string, T])[] {
  return Object.entries(map).sort(([a], [b]) => rank(a) - rank(b) || byBytes(a, b));
}

/** Characters that a parser may read as a blank, a line break or nothing, and that JSON does not escape. */
const HIDDEN = /[\u007f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff\ufffe\uffff]/;

/** A scalar in YAML, quoted if any YAML parser could read it as another type. */
export function yamlScalar(value: string | number | boolean): string {
  if (typeof value !== "string") return String(value);
  if (value.includes("\n") || HIDDEN.test(value)) {
    const hidden = new RegExp(HIDDEN, "g");
    return JSON.stringify(value).replace(hidden, (text) => `\\u${text.charCodeAt(0).toString(16).padStart(4, "0")}`);
  }
  return stringify(value, { version: "1.1", lineWidth: 0, defaultStringType: "PLAIN" }).trimEnd();
}

function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered);
  if (typeof value !== "object" || value === null) return value;
  const map = value as Readonly<Record<string, unknown>>;
  return Object.fromEntries(inOrder(map).map(([key, item]) => [key, ordered(item)]));
}

/** Manifests without expressions as one YAML text, in their order. */
export function writeManifests(manifests: readonly unknown[]): string {
  const options = { lineWidth: 0, version: "1.1", aliasDuplicateObjects: false } as const;
  return manifests.map((manifest) => stringify(ordered(manifest), options)).join("---\n");
}
