import { createHash } from "node:crypto";
import * as fs from "node:fs";

/** Tells whether the node's executable is the image's own. */
export interface PluginCopy {
  compare(source: string, copy: string): "current" | "other" | "missing";
}

const BLOCK = 256 * 1024;

/** Reads block by block: the executable is larger than this container's memory may be. */
function digest(path: string, buffer: Buffer): string {
  const hash = createHash("sha256");
  const descriptor = fs.openSync(path, "r");
  try {
    for (let read = 1; read > 0; ) {
      read = fs.readSync(descriptor, buffer, 0, BLOCK, null);
      hash.update(buffer.subarray(0, read));
    }
  } finally {
    fs.closeSync(descriptor);
  }
  return hash.digest("hex");
}

/** Compares by content, and reads a file again only when its inode, size or times have changed. */
export function pluginCopy(): PluginCopy {
  const known = new Map<string, { readonly stamp: string; readonly digest: string }>();
  const digestOf = (path: string): string | undefined => {
    const stat = fs.statSync(path, { throwIfNoEntry: false });
    if (!stat?.isFile()) return undefined;
    const stamp = [stat.dev, stat.ino, stat.size, stat.mtimeMs, stat.ctimeMs, stat.mode].join(" ");
    const last = known.get(path);
    if (last?.stamp === stamp) return last.digest;
    const fresh = `${digest(path, Buffer.alloc(BLOCK))} ${stat.mode & 0o111}`;
    known.set(path, { stamp, digest: fresh });
    return fresh;
  };
  return {
    compare: (source, copy) => {
      const [wanted, found] = [digestOf(source), digestOf(copy)];
      if (wanted === undefined) throw new Error(`the plugin's executable ${source} is missing in this container`);
      if (found === undefined) return "missing";
      return wanted.split(" ")[0] === found.split(" ")[0] && !found.endsWith(" 0") ? "current" : "other";
    },
  };
}
