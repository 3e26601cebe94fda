import { readFile, writeFile } from "node:fs/promises";

/**
 * Variables by which whoever starts the executable could load code into it or change how it runs. `BUN_BE_BUN` stays:
 * the image runs its other programs by it, and the node's launcher passes no such variable on.
 */
const VARIABLES = ["BUN_OPTIONS", "BUN_INSPECT"];

/** No variable's name can hold this, so a name that begins with it is never found. */
const IMPOSSIBLE = "=";

/** Makes an executable deaf to {@link VARIABLES}: there is no option for it. @throws where one is not in it */
export async function seal(path: string): Promise<void> {
  const bytes = await readFile(path);
  for (const name of VARIABLES) {
    const first = bytes.indexOf(name);
    if (first < 0) throw new Error(`${path} does not know ${name}: look up what took its place`);
    for (let at = first; at >= 0; at = bytes.indexOf(name, at)) bytes.write(IMPOSSIBLE, at, "latin1");
  }
  await writeFile(path, bytes);
}
