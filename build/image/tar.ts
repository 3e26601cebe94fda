import { Readable } from "node:stream";
import { extract, pack } from "tar-stream";

/** A file by its path without a leading slash. */
export interface TarEntry {
  readonly name: string;
  /** @default 0o644 */
  readonly mode?: number;
  readonly content: Buffer;
}

/** Permissions of a file whose entry has none, and of every directory. */
const DEFAULT_MODE = 0o644;
const DIRECTORY_MODE = 0o755;

/** Every directory above the given entries, parents first. */
function directories(entries: readonly TarEntry[]): string[] {
  const found = new Set<string>();
  for (const { name } of entries) {
    const parts = name.split("/");
    for (let depth = 1; depth < parts.length; depth++) found.add(parts.slice(0, depth).join("/"));
  }
  return [...found].sort();
}

/** A tar archive whose bytes depend only on its entries: sorted, owned by root, dated 1970-01-01. */
export async function tarArchive(entries: readonly TarEntry[]): Promise<Buffer> {
  const archive = pack();
  const common = { uid: 0, gid: 0, mtime: new Date(0) };
  for (const name of directories(entries)) {
    archive.entry({ ...common, name, type: "directory", mode: DIRECTORY_MODE });
  }
  for (const { name, mode = DEFAULT_MODE, content } of [...entries].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    archive.entry({ ...common, name, mode }, content);
  }
  archive.finalize();
  const chunks: Buffer[] = [];
  for await (const chunk of archive) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** The regular files of a tar archive, by path. */
export async function untar(archive: Buffer): Promise<Map<string, Buffer>> {
  const files = new Map<string, Buffer>();
  for await (const entry of Readable.from([archive]).pipe(extract())) {
    const chunks: Buffer[] = [];
    for await (const chunk of entry) chunks.push(chunk as Buffer);
    if (entry.header.type === "file") files.set(entry.header.name, Buffer.concat(chunks));
  }
  return files;
}
