/** Files that are new, complete and synced to disk. */
import { closeSync, fchmodSync, fsyncSync, openSync, readSync, writeSync } from "node:fs";
import { equal } from "./bytes";

/** Bytes that are read or written at a time, since an executable may exceed this process's memory limit. */
const CHUNK = 128 * 1024;

function withOpen<T>(path: string, flags: "r" | "wx", mode: number, use: (descriptor: number) => T): T {
  const descriptor = openSync(path, flags, mode);
  try {
    return use(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

const create = (path: string, mode: number, fill: (descriptor: number) => void): void =>
  withOpen(path, "wx", mode, (descriptor) => {
    fill(descriptor);
    fchmodSync(descriptor, mode);
    fsyncSync(descriptor);
  });

function writeFully(descriptor: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes.subarray(at));
}

const readChunk = (descriptor: number, into: Uint8Array): number => readSync(descriptor, into, 0, into.length, null);

/** Creates a new file (else EEXIST) with this mode, whatever the umask, and syncs it to disk. */
export const createFileSync = (path: string, bytes: Uint8Array, mode: number): void =>
  create(path, mode, (descriptor) => writeFully(descriptor, bytes));

/** The same with the bytes of another file. */
export const copyFileSync = (from: string, path: string, mode: number): void =>
  withOpen(from, "r", 0, (source) =>
    create(path, mode, (descriptor) => {
      const block = new Uint8Array(CHUNK);
      for (let size = -1; size !== 0; ) {
        size = readChunk(source, block);
        writeFully(descriptor, block.subarray(0, size));
      }
    }),
  );

/** Syncs a file's content, or a directory's entries, to disk. */
export const settleSync = (path: string): void => withOpen(path, "r", 0, fsyncSync);

function isSame(left: number, right: number): boolean {
  const [one, other] = [new Uint8Array(CHUNK), new Uint8Array(CHUNK)];
  for (;;) {
    const size = readChunk(left, one);
    if (size !== readChunk(right, other)) return false;
    if (size === 0) return true;
    if (!equal(one.subarray(0, size), other.subarray(0, size))) return false;
  }
}

/** Whether two files have the same content. */
export const isSameSync = (left: string, right: string): boolean =>
  withOpen(left, "r", 0, (one) => withOpen(right, "r", 0, (other) => isSame(one, other)));
