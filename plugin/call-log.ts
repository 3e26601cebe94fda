import { closeSync, constants, fstatSync, openSync, renameSync, writeSync } from "node:fs";

/** Where calls are recorded, if the installer made the directory. */
export const CALL_LOG = "/run/linkerd-cni/plugin.log";

const MAX_BYTES = 4 * 1024 * 1024;
const FLAGS = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NONBLOCK;
const MODE = 0o600;

/**
 * Appends a line; a log that is full is set aside as `.1`, in place of the one before. It never fails: a call's
 * result does not depend on its record.
 */
export function appendLine(path: string, line: string): void {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(path, FLAGS, MODE);
    writeSync(descriptor, line);
    if (fstatSync(descriptor).size >= MAX_BYTES) renameSync(path, `${path}.1`);
  } catch {
    // No directory, no room, no permission: no record.
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
