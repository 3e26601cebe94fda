/** Standard input and output as runtimes give them: pipes, files, and descriptors that do not block. */
import { readSync, writeSync } from "node:fs";

const CHUNK = 65536;
/** Milliseconds until a descriptor that had nothing, or no room, is tried again. */
const PAUSE_MS = 1;

function isBusy(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "EAGAIN";
}

function pause(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
}

/** Does a call again while the descriptor is busy. */
function patiently(call: () => number): number {
  for (;;) {
    try {
      return call();
    } catch (error) {
      if (!isBusy(error)) throw error;
      pause();
    }
  }
}

/** Everything up to the end of input. */
export function readAll(descriptor: number): string {
  const chunks: Buffer[] = [];
  for (;;) {
    const chunk = Buffer.allocUnsafe(CHUNK);
    const size = patiently(() => readSync(descriptor, chunk, 0, CHUNK, null));
    if (size === 0) return Buffer.concat(chunks).toString("utf8");
    chunks.push(chunk.subarray(0, size));
  }
}

/** Writes a text; false where not all of it could be. */
export function writeAll(descriptor: number, text: string): boolean {
  const bytes = Buffer.from(text);
  try {
    for (let at = 0; at < bytes.length; ) at += patiently(() => writeSync(descriptor, bytes, at));
    return true;
  } catch {
    return false;
  }
}
