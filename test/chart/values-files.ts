import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { values } from "../../constructs/values";
import { root } from "./helm";

/** The directory of users' values files. */
export const folder = join(root, "test", "fixtures", "values");

/** Their names. */
export const files: readonly string[] = readdirSync(folder).sort();

/** The values of a file, without those that the chart does not know: the constructs refuse them. */
export function given(name: string): object {
  const read = parse(readFileSync(join(folder, name), "utf8"), { merge: true }) as Record<string, unknown>;
  return Object.fromEntries(Object.entries(read).filter(([key]) => key in values));
}
