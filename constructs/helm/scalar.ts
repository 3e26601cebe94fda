import { stringify } from "yaml";

/** A scalar in YAML, quoted wherever any YAML parser could take it for something else. */
export function yamlScalar(value: string | number | boolean): string {
  if (typeof value !== "string") return String(value);
  if (value.includes("\n")) return JSON.stringify(value);
  return stringify(value, { version: "1.1", lineWidth: 0, defaultStringType: "PLAIN" }).trimEnd();
}
