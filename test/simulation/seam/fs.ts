/** `node:fs` on the simulated machine. */
import type * as fs from "node:fs";
import { kernel } from "./kernel";

export type { Dirent, FSWatcher, Stats } from "node:fs";

/** Throws the failures of the machine as errors of this process. */
function called(name: string, ...args: readonly unknown[]): unknown {
  try {
    return kernel.file(name, ...args);
  } catch (error) {
    const { message, code } = error as { readonly message: string; readonly code?: string };
    throw Object.assign(new Error(message), { code });
  }
}

export const call = <T extends (...args: never[]) => unknown>(name: string): T =>
  ((...args: readonly unknown[]) => called(name, ...args)) as unknown as T;

const stat =
  (follow: boolean) =>
  (path: string, options?: { readonly throwIfNoEntry?: boolean }): unknown =>
    called("stat", path, follow, options?.throwIfNoEntry !== false);

export const constants = { W_OK: 2, X_OK: 1, COPYFILE_EXCL: 1 };
export const statSync = stat(true) as typeof fs.statSync;
export const lstatSync = stat(false) as typeof fs.lstatSync;
export const readFileSync = call<typeof fs.readFileSync>("read");
export const readdirSync = call<typeof fs.readdirSync>("list");
export const readlinkSync = call<typeof fs.readlinkSync>("readlink");
export const realpathSync = call<(path: string) => string>("realpath");
export const existsSync = call<typeof fs.existsSync>("exists");
export const accessSync = call<typeof fs.accessSync>("access");
export const statfsSync = call<typeof fs.statfsSync>("statfs");
export const openSync = call<typeof fs.openSync>("open");
export const closeSync = call<typeof fs.closeSync>("close");
export const readSync = call<typeof fs.readSync>("pread");
export const writeSync = call<typeof fs.writeSync>("write");
export const fchmodSync = call<typeof fs.fchmodSync>("fchmod");
export const fsyncSync = call<typeof fs.fsyncSync>("fsync");
export const linkSync = call<typeof fs.linkSync>("link");
export const symlinkSync = call<typeof fs.symlinkSync>("symlink");
export const renameSync = call<typeof fs.renameSync>("rename");
export const unlinkSync = call<typeof fs.unlinkSync>("unlink");
export const mkdirSync = call<typeof fs.mkdirSync>("mkdir");
export const rmdirSync = call<typeof fs.rmdirSync>("rmdir");
export const chownSync = call<typeof fs.chownSync>("chown");
export const watch = call<typeof fs.watch>("watch");
