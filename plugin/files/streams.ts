/** Whole texts from and to descriptors as runtimes give them: pipes, files, and ones that do not block. */
import { Errno, SystemError } from "../system-error";
import { type Files, Open } from "./port";

const CHUNK = 65536;
/** Milliseconds until a descriptor that had nothing, or no room, is tried again. */
const PAUSE_MS = 1;

function pause(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
}

/** Waits while a descriptor is busy; a signal that came between needs no waiting. @throws anything else */
function overcome(error: unknown): void {
  const cause = error instanceof SystemError ? error.errno : 0;
  if (cause === Errno.EAGAIN) pause();
  else if (cause !== Errno.EINTR) throw error;
}

/** Does a call again until it succeeds or really fails. */
function patiently(call: () => number): number {
  for (;;) {
    try {
      return call();
    } catch (error) {
      overcome(error);
    }
  }
}

/** Everything up to the end of input. @throws SystemError */
export function readAll(files: Files, descriptor: number): string {
  const chunks: Buffer[] = [];
  for (;;) {
    const chunk = Buffer.allocUnsafe(CHUNK);
    const size = patiently(() => files.read(descriptor, chunk));
    if (size === 0) return Buffer.concat(chunks).toString("utf8");
    chunks.push(chunk.subarray(0, size));
  }
}

/** The text of a file. @throws SystemError */
export function readText(files: Files, path: string): string {
  const descriptor = files.open(path, Open.readOnly | Open.closeOnExec);
  try {
    return readAll(files, descriptor);
  } finally {
    files.close(descriptor);
  }
}

/** Writes a text; false where not all of it could be. */
export function writeAll(files: Files, descriptor: number, text: string): boolean {
  const bytes = Buffer.from(text);
  try {
    for (let at = 0; at < bytes.length; ) at += patiently(() => files.write(descriptor, bytes.subarray(at)));
    return true;
  } catch {
    return false;
  }
}
