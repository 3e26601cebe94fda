import { closeSync, fstatSync, openSync, readSync, renameSync, statSync, writeSync } from "node:fs";
import { SystemError } from "../system-error";
import type { Files } from "./port";

/** The same system calls, by Node. */
function translated<T>(operation: string, call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw new SystemError(operation, -((error as NodeJS.ErrnoException).errno ?? 0));
  }
}

export const nodeFiles: Files = {
  open: (path, flags) => translated(`open ${path}`, () => openSync(path, flags, 0o600)),
  read: (descriptor, buffer) => translated("read", () => readSync(descriptor, buffer)),
  write: (descriptor, bytes) => translated("write", () => writeSync(descriptor, bytes)),
  size: (descriptor) => translated("measure", () => fstatSync(descriptor).size),
  close: (descriptor) => closeSync(descriptor),
  rename: (from, to) => translated(`rename ${from}`, () => renameSync(from, to)),
  identify: (path) => {
    const { dev, ino } = translated(`look at ${path}`, () => statSync(path, { bigint: true }));
    return { device: `${dev}`, inode: ino };
  },
};
