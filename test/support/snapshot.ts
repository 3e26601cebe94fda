import { createHash } from "node:crypto";
import { lstat, readdir, readFile, readlink } from "node:fs/promises";
import { join } from "node:path";

const sha256 = (content: Buffer) => createHash("sha256").update(content).digest("hex");

/** The description of a path: kind, permission bits, and a digest of a file's bytes or a link's target. */
async function describe(path: string): Promise<string> {
  const stat = await lstat(path);
  const mode = (stat.mode & 0o7777).toString(8);
  if (stat.isSymbolicLink()) return `link ${await readlink(path)}`;
  if (stat.isDirectory()) return `directory ${mode}`;
  return `file ${mode} ${sha256(await readFile(path))}`;
}

/**
 * Every path below a directory with its description: equal snapshots mean that no byte differs. Other programs may be
 * writing there: a path that is deleted after the directory was listed is left out.
 */
export async function snapshot(directory: string): Promise<Record<string, string>> {
  const names = await readdir(directory, { recursive: true });
  const entries = names.sort().map(async (name) => {
    try {
      return [[name, await describe(join(directory, name))] as const];
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw error;
    }
  });
  return Object.fromEntries((await Promise.all(entries)).flat());
}

/** The paths at which two snapshots differ. */
export function differences(before: Record<string, string>, after: Record<string, string>): string[] {
  const paths = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...paths].filter((path) => before[path] !== after[path]).sort();
}
