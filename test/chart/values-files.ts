import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { root } from "./helm";

/** The directory of users' values files. */
export const folder = join(root, "test", "fixtures", "values");

/** Their names. */
export const files: readonly string[] = readdirSync(folder).sort();

/** What a parent chart passes besides values, which the constructs do not have. */
const FROM_PARENTS = ["global", "enabled"];

/** The values of a file. */
export function given(name: string): object {
  const read = parse(readFileSync(join(folder, name), "utf8"), { merge: true }) as Record<string, unknown>;
  return Object.fromEntries(Object.entries(read).filter(([key]) => !FROM_PARENTS.includes(key)));
}
