import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** Replaces a folder: files that are no longer generated are deleted. */
export async function writeFolder(folder: string, files: ReadonlyMap<string, string>): Promise<void> {
  const fresh = `${folder}.new`;
  await rm(fresh, { recursive: true, force: true });
  for (const [name, content] of files) {
    const path = join(fresh, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, content);
  }
  await rm(folder, { recursive: true, force: true });
  await rename(fresh, folder);
}
