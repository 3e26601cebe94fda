/**
 * Files: by Node here, by the C host in fs.engine.ts. Names, arguments and errors are Node's, as far as programs use them:
 * a call that fails throws an Error whose `code` is the name of an errno and whose message begins with it.
 */
import * as node from "node:fs";

/** A file's status. */
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

/** An entry of a directory. */
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
  /** Bytes that are not UTF-8 become U+FFFD. */
  (path: string, encoding: "utf8"): string;
}

interface ReaddirSync {
  (path: string): string[];
  (path: string, options: { readonly withFileTypes: true }): Dirent[];
}

/** Modes of {@link accessSync}; bits. */
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
/** @param position null: after the last read of the descriptor. @returns bytes that were read, 0 at the end */
export const readSync: (
  descriptor: number,
  into: Uint8Array,
  offset: number,
  length: number,
  position: number | null,
) => number = node.readSync;

/** Tells each change of a directory's entries or of a file in it. @throws if the kernel gives no watch (ENOSPC, EMFILE) */
export const watch: (directory: string, changed: () => void) => Watch = node.watch;

/**
 * Does what may take minutes on a slow disk, such as every change of a file, while the process does other work: on the
 * engine in a child process, so that nothing but what it returns, as JSON has it, comes back.
 * @throws what it throws: message and code
 */
export const apart = async <T>(work: () => T): Promise<T> => work();

/**
 * Whether a process opens a directory, or a file in it, after this has begun.
 * @param meanwhile what this process does after it has begun to look, which must not open the directory itself
 * @throws if the kernel does not tell (ENOSPC, EMFILE), and under Node, which cannot ask
 */
export const isOpened: (directory: string, meanwhile: () => Promise<unknown>, withinMs: number) => Promise<boolean> =
  async () => {
    throw new Error("not by Node");
  };

/** Gives a file a second name. */
export const linkSync: (existing: string, path: string) => void = node.linkSync;
export const symlinkSync: (target: string, path: string) => void = node.symlinkSync;
export const renameSync: (from: string, to: string) => void = node.renameSync;
export const unlinkSync: (path: string) => void = node.unlinkSync;
export const mkdirSync: (path: string, mode: number) => void = node.mkdirSync;
export const rmdirSync: (path: string) => void = node.rmdirSync;
export const chownSync: (path: string, uid: number, gid: number) => void = node.chownSync;

function withFile(path: string, flags: string, mode: number, use: (descriptor: number) => void): void {
  const descriptor = node.openSync(path, flags, mode);
  try {
    use(descriptor);
    node.fsyncSync(descriptor);
  } finally {
    node.closeSync(descriptor);
  }
}

/** Creates a file that is not there yet (else EEXIST), with its bytes safe on the disk and this mode, whatever the umask. */
export function createFileSync(path: string, bytes: Uint8Array, mode: number): void {
  withFile(path, "wx", mode, (descriptor) => {
    node.writeFileSync(descriptor, bytes);
    node.fchmodSync(descriptor, mode);
  });
}

/** The same with the bytes of another file. */
export function copyFileSync(from: string, path: string, mode: number): void {
  node.copyFileSync(from, path, node.constants.COPYFILE_EXCL);
  withFile(path, "r", mode, (descriptor) => node.fchmodSync(descriptor, mode));
}

/** Makes the bytes of a file, or the names in a directory, safe on the disk. */
export const settleSync = (path: string): void => withFile(path, "r", 0, () => undefined);

/** Whether two files hold the same. */
export const isSameSync = (left: string, right: string): boolean =>
  node.readFileSync(left).equals(node.readFileSync(right));
