import { stringify } from "yaml";
import { inOrder } from "./order";

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
