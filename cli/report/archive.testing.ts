import { Readable } from "node:stream";
import { gunzipSync } from "node:zlib";
import { extract } from "tar-stream";

/** The files of an archive, by their names without the folder. */
export async function unpacked(archive: Buffer): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>();
  for await (const entry of Readable.from([gunzipSync(archive)]).pipe(extract())) {
    const chunks: Buffer[] = [];
    for await (const chunk of entry) chunks.push(chunk as Buffer);
    files.set(entry.header.name.replace(/^[^/]*\//, ""), Buffer.concat(chunks).toString("utf8"));
  }
  return files;
}
