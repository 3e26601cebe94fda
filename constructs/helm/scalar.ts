import { stringify } from "yaml";

/** What a parser may take for a blank, a line break or no character at all, and JSON leaves as it is. */
const HIDDEN = /[\u007f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff\ufffe\uffff]/;

/** A scalar in YAML, quoted wherever any YAML parser could take it for something else. */
export function yamlScalar(value: string | number | boolean): string {
  if (typeof value !== "string") return String(value);
  if (value.includes("\n") || HIDDEN.test(value)) {
    const hidden = new RegExp(HIDDEN, "g");
    return JSON.stringify(value).replace(hidden, (text) => `\\u${text.charCodeAt(0).toString(16).padStart(4, "0")}`);
  }
  return stringify(value, { version: "1.1", lineWidth: 0, defaultStringType: "PLAIN" }).trimEnd();
}
