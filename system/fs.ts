/**
 * Files: by Node here, by the C host in fs.engine.ts. Names, arguments and errors are those of Node: a failed call
 * throws an Error whose `code` is the name of an errno and whose message begins with it.
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
  /** The watch has ended: the kernel reports no more events. */
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
/** Free space for unprivileged users: `bavail` blocks of `bsize` bytes. */
export const statfsSync: (path: string) => { readonly bavail: number; readonly bsize: number } = node.statfsSync;
export const openSync: (path: string, flags: "r") => number = node.openSync;
export const closeSync: (descriptor: number) => void = node.closeSync;
/** @param position null: the descriptor's current offset. @returns bytes read, 0 at the end */
export const readSync: (
  descriptor: number,
  into: Uint8Array,
  offset: number,
  length: number,
  position: number | null,
) => number = node.readSync;

/**
 * Reports each change of a directory's entries or of a file in it. @throws if the kernel refuses a watch (ENOSPC,
 * EMFILE)
 */
export const watch: (directory: string, changed: () => void) => Watch = node.watch;

/**
 * Runs a function that may take minutes on a slow disk, such as a change of a file, without blocking the process: the
 * engine runs it in a child process, and only its result comes back, by way of JSON. @throws the function's error, with
 * message and code
 */
export const apart = async <T>(work: () => T): Promise<T> => work();

/**
 * Whether a process opens a directory, or a file in it, after the watch has begun. @param meanwhile an action of this
 * process after the watch has begun, which must not open the directory @throws if the kernel refuses the watch (ENOSPC,
 * EMFILE), and under Node, which does not support it
 */
export const isOpened: (directory: string, meanwhile: () => Promise<unknown>, withinMs: number) => Promise<boolean> =
  async () => {
    throw new Error("not by Node");
  };

/** Creates a hard link. */
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

/** Creates a new file (else EEXIST) with this mode, whatever the umask, and syncs it to disk. */
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

/** Syncs a file's content, or a directory's entries, to disk. */
export const settleSync = (path: string): void => withFile(path, "r", 0, () => undefined);

/** Whether two files have the same content. */
export const isSameSync = (left: string, right: string): boolean =>
  node.readFileSync(left).equals(node.readFileSync(right));
