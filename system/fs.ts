/**
 * Files: by Node here, by the C host in fs.engine.ts. Names, arguments and errors are Node's, as far as programs use them:
 * a call that fails throws an Error whose `code` is the name of an errno and whose message begins with it.
 */
import * as node from "node:fs";
import * as promises from "node:fs/promises";

/** What the kernel tells of a file. */
export interface Stats {
  readonly dev: number;
  readonly ino: number;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  /** In bytes. */
  readonly size: number;
  /** In milliseconds since 1970, with fractions. */
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  isFile(): boolean;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}

/** What a directory tells of a file in it. */
export interface Dirent {
  readonly name: string;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}

/** A watch of a directory. */
export interface Watch {
  /** Ends it. */
  close(): void;
  /** The watch is over: the kernel does not tell any more. */
  on(event: "error", listener: (error: Error) => void): unknown;
}

interface StatSync {
  (path: string): Stats;
  (path: string, options: { readonly throwIfNoEntry: false }): Stats | undefined;
}

interface ReadFileSync {
  (path: string): Uint8Array;
  /** What is not UTF-8 becomes U+FFFD. */
  (path: string, encoding: "utf8"): string;
}

interface ReaddirSync {
  (path: string): string[];
  (path: string, options: { readonly withFileTypes: true }): Dirent[];
}

/** What {@link accessSync} asks for; bits. */
export const constants: { readonly W_OK: number; readonly X_OK: number } = node.constants;

export const statSync: StatSync = node.statSync;
/** Of a link itself. */
export const lstatSync: StatSync = node.lstatSync;
export const readFileSync: ReadFileSync = node.readFileSync;
export const readdirSync: ReaddirSync = node.readdirSync;
export const readlinkSync: (path: string) => string = node.readlinkSync;
export const realpathSync: (path: string) => string = node.realpathSync;
export const existsSync: (path: string) => boolean = node.existsSync;
export const accessSync: (path: string, mode: number) => void = node.accessSync;
/** Free space for those who are not root: `bavail` blocks of `bsize` bytes. */
export const statfsSync: (path: string) => { readonly bavail: number; readonly bsize: number } = node.statfsSync;
export const openSync: (path: string, flags: "r") => number = node.openSync;
export const closeSync: (descriptor: number) => void = node.closeSync;
/** @param position null: where the last read of the descriptor ended. @returns bytes that were read, 0 at the end */
export const readSync: (
  descriptor: number,
  into: Uint8Array,
  offset: number,
  length: number,
  position: number | null,
) => number = node.readSync;

/** Tells each change of a directory's entries or of a file in it. @throws where the kernel gives no watch (ENOSPC, EMFILE) */
export const watch: (directory: string, changed: () => void) => Watch = node.watch;

// What changes files is asynchronous: on a slow disk each may take minutes, in which the process does other work.

/** Gives a file a second name. */
export const link: (existing: string, path: string) => Promise<void> = promises.link;
export const symlink: (target: string, path: string) => Promise<void> = promises.symlink;
export const rename: (from: string, to: string) => Promise<void> = promises.rename;
export const unlink: (path: string) => Promise<void> = promises.unlink;
export const mkdir: (path: string, mode: number) => Promise<void> = promises.mkdir;
export const rmdir: (path: string) => Promise<void> = promises.rmdir;
export const chown: (path: string, uid: number, gid: number) => Promise<void> = promises.chown;

async function withFile(
  path: string,
  flags: string,
  mode: number,
  use: (file: promises.FileHandle) => Promise<void>,
): Promise<void> {
  const file = await promises.open(path, flags, mode);
  try {
    await use(file);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** Creates a file that is not there yet (else EEXIST), with its bytes safe on the disk and this mode, whatever the umask. */
export function createFile(path: string, bytes: Uint8Array, mode: number): Promise<void> {
  return withFile(path, "wx", mode, async (file) => {
    await file.writeFile(bytes);
    await file.chmod(mode);
  });
}

/** The same with the bytes of another file. */
export async function copyFile(from: string, path: string, mode: number): Promise<void> {
  await promises.copyFile(from, path, node.constants.COPYFILE_EXCL);
  await withFile(path, "r", mode, (file) => file.chmod(mode));
}

/** Makes the bytes of a file, or the names in a directory, safe on the disk. */
export function sync(path: string): Promise<void> {
  return withFile(path, "r", 0, async () => undefined);
}
