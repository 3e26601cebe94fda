import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { root } from "./paths";

/** The measurements, one key each, in version control, so that a change shows its cost. */
export const RESULTS = join(root, "bench", "results.json");

/** Writes one measurement, and keeps the others. */
export async function recordResult(key: string, value: object, path = RESULTS): Promise<void> {
  const before = await readFile(path, "utf8").then(
    (text) => JSON.parse(text) as object,
    () => ({}),
  );
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `${JSON.stringify({ ...before, [key]: value }, undefined, 2)}\n`);
}
