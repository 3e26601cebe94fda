/**
 * The engine's `node:fs`, which the build puts in its place: the functions that programs use, with Node's names,
 * arguments and errors, by the C host. A failed call throws an Error whose `code` is the name of an errno and whose
 * message begins with it.
 */
import { codeOf } from "../../cni/errors";
import { errnoMeaning, errnoName } from "../../host/errno";
import { AT_REMOVEDIR, Open, readBytes } from "../../host/files";
import { host } from "./host";
import { ready } from "./loop";

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
export interface FSWatcher {
  /** Ends it. */
  close(): void;
  /** The watch has ended: the kernel reports no more events. */
  on(event: "error", listener: (error: Error) => void): unknown;
}

/** The error of a failed call as in Node, with a code: `ENOENT: no such file or directory, open '/x'`. */
function failed(errno: number, what: string): Error & { readonly code: string } {
  const code = errnoName(errno);
  const meaning = errnoMeaning(errno);
  return Object.assign(new Error(`${code}: ${meaning === undefined ? "" : `${meaning}, `}${what}`), { code });
}

/** The result of a call. @throws an Error as in Node, with the call and its paths */
export function checked(result: number, call: string, ...paths: readonly string[]): number {
  if (result >= 0) return result;
  throw failed(-result, [call, paths.map((path) => `'${path}'`).join(" -> ")].join(" ").trim());
}

export const constants = { W_OK: 2, X_OK: 1 } as const;

const AT_SYMLINK_NOFOLLOW = 0x100;
const STATX_BASIC_STATS = 0x7ff;
/** Offsets of the members of `struct statx`, from the kernel's linux/stat.h. */
const STATX = {
  size: 256,
  uid: 0x14,
  gid: 0x18,
  mode: 0x1c,
  ino: 0x20,
  bytes: 0x28,
  ctime: 0x60,
  mtime: 0x70,
  dev: 0x88,
};
const TYPE = { mask: 0o170000, file: 0o100000, directory: 0o040000, link: 0o120000 };

/** A 64-bit number, which loses precision beyond 53 bits, as in Node. */
const long = (view: DataView, at: number) => view.getUint32(at, true) + view.getInt32(at + 4, true) * 2 ** 32;

function statsOf(view: DataView): Stats {
  const time = (at: number) => long(view, at) * 1000 + view.getUint32(at + 8, true) / 1e6;
  const mode = view.getUint16(STATX.mode, true);
  const [major, minor] = [view.getUint32(STATX.dev, true), view.getUint32(STATX.dev + 4, true)];
  const is = (type: number) => (mode & TYPE.mask) === type;
  return {
    dev: (minor & 0xff) + major * 0x100 + (minor >>> 8) * 0x100000,
    ino: long(view, STATX.ino),
    mode,
    uid: view.getUint32(STATX.uid, true),
    gid: view.getUint32(STATX.gid, true),
    size: long(view, STATX.bytes),
    mtimeMs: time(STATX.mtime),
    ctimeMs: time(STATX.ctime),
    isFile: () => is(TYPE.file),
    isDirectory: () => is(TYPE.directory),
    isSymbolicLink: () => is(TYPE.link),
  };
}

interface StatSync {
  (path: string): Stats;
  (path: string, options: { readonly throwIfNoEntry: false }): Stats | undefined;
}

function statBy(call: string, flags: number): StatSync {
  const stat = (path: string, options?: { readonly throwIfNoEntry: false }) => {
    const view = new DataView(new ArrayBuffer(STATX.size));
    try {
      checked(host.statx(path, flags, STATX_BASIC_STATS, new Uint8Array(view.buffer)), call, path);
    } catch (error) {
      if (options !== undefined && codeOf(error) === "ENOENT") return undefined;
      throw error;
    }
    return statsOf(view);
  };
  return stat as StatSync;
}

export const statSync = statBy("stat", 0);
export const lstatSync = statBy("lstat", AT_SYMLINK_NOFOLLOW);

/** Opens a file for the duration of a function. */
function withOpen<T>(path: string, flags: number, mode: number, work: (descriptor: number) => T): T {
  const descriptor = checked(host.open(path, flags | Open.closeOnExec, mode), "open", path);
  try {
    return work(descriptor);
  } finally {
    host.close(descriptor);
  }
}

const CHUNK = 128 * 1024;

function readFile(path: string): Uint8Array;
function readFile(path: string, encoding: "utf8"): string;
function readFile(path: string, encoding?: "utf8"): Uint8Array | string {
  const bytes = withOpen(path, Open.readOnly, 0, (descriptor) => readBytes(host, descriptor));
  if (typeof bytes === "number") throw failed(-bytes, `read '${path}'`);
  return encoding === undefined ? bytes : host.decode(bytes);
}
export const readFileSync = readFile;

/** Offsets of the members of `struct linux_dirent64`. */
const DIRENT = { length: 16, type: 18, name: 19 };
const DT = { unknown: 0, directory: 4, link: 10 };

interface Entry {
  readonly name: string;
  readonly type: number;
}

function entriesOf(bytes: Uint8Array): Entry[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const entries: Entry[] = [];
  for (let at = 0; at < bytes.length; at += view.getUint16(at + DIRENT.length, true)) {
    const name = bytes.subarray(at + DIRENT.name, bytes.indexOf(0, at + DIRENT.name));
    entries.push({ name: host.decode(name), type: view.getUint8(at + DIRENT.type) });
  }
  return entries;
}

function entriesIn(path: string): readonly Entry[] {
  const found: Entry[] = [];
  // A path to a FIFO must not block.
  withOpen(path, Open.readOnly | Open.nonBlocking, 0, (descriptor) => {
    const into = new Uint8Array(32 * 1024);
    for (let size = -1; size !== 0; ) {
      size = checked(host.getdents(descriptor, into), "scandir", path);
      found.push(...entriesOf(into.subarray(0, size)));
    }
  });
  const names = found.filter(({ name }) => name !== "." && name !== "..");
  return names.sort((one, other) => (one.name < other.name ? -1 : 1));
}

function direntOf(directory: string, { name, type }: Entry): Dirent {
  // Some file systems do not report it.
  const stat = type === DT.unknown ? lstatSync(`${directory}/${name}`, { throwIfNoEntry: false }) : undefined;
  return {
    name,
    isDirectory: () => stat?.isDirectory() ?? type === DT.directory,
    isSymbolicLink: () => stat?.isSymbolicLink() ?? type === DT.link,
  };
}

function readDirectory(path: string): string[];
function readDirectory(path: string, options: { readonly withFileTypes: true }): Dirent[];
function readDirectory(path: string, options?: { readonly withFileTypes: true }): string[] | Dirent[] {
  const entries = entriesIn(path);
  return options === undefined ? entries.map(({ name }) => name) : entries.map((entry) => direntOf(path, entry));
}
export const readdirSync = readDirectory;

const LONGEST_PATH = 4096;

export function readlinkSync(path: string): string {
  const into = new Uint8Array(LONGEST_PATH);
  return host.decode(into.subarray(0, checked(host.readlink(path, into), "readlink", path)));
}

const O_PATH = 0o10000000;

export const realpathSync = (path: string): string =>
  withOpen(path, O_PATH, 0, (descriptor) => readlinkSync(`/proc/self/fd/${descriptor}`));

export const existsSync = (path: string): boolean => host.access(path) === 0;

export function accessSync(path: string, mode: number): void {
  checked(host.accessAs(path, mode), "access", path);
}

/** Offsets of the members of `struct statfs`. */
const STATFS = { size: 256, blockSize: 8, available: 32 };

export function statfsSync(path: string): { readonly bavail: number; readonly bsize: number } {
  const view = new DataView(new ArrayBuffer(STATFS.size));
  checked(host.statfs(path, new Uint8Array(view.buffer)), "statfs", path);
  return { bavail: long(view, STATFS.available), bsize: long(view, STATFS.blockSize) };
}

const O_EXCL = 0o200;
const FLAGS = { r: Open.readOnly, wx: Open.writeOnly | Open.create | O_EXCL };

export const openSync = (path: string, flags: keyof typeof FLAGS, mode = 0o666): number =>
  checked(host.open(path, FLAGS[flags] | Open.closeOnExec, mode), "open", path);

export function closeSync(descriptor: number): void {
  checked(host.close(descriptor), "close");
}

export function readSync(
  descriptor: number,
  into: Uint8Array,
  offset: number,
  length: number,
  position: number | null,
): number {
  const part = into.subarray(offset, offset + length);
  return checked(position === null ? host.read(descriptor, part) : host.pread(descriptor, part, position), "read");
}

/** @returns bytes written, which may be fewer */
export const writeSync = (descriptor: number, bytes: Uint8Array): number =>
  checked(host.write(descriptor, bytes), "write");

export const fchmodSync = (descriptor: number, mode: number): void =>
  void checked(host.fchmod(descriptor, mode), "fchmod");
export const fsyncSync = (descriptor: number): void => void checked(host.fsync(descriptor), "fsync");

/** Flags and events of inotify(7). */
export const INOTIFY_FLAGS = 0x80800; // IN_CLOEXEC, IN_NONBLOCK
/** Events of changes of a directory's entries, of a file in it, or of the directory itself. */
const WATCHED = 0x0002 | 0x0004 | 0x0040 | 0x0080 | 0x0100 | 0x0200 | 0x0400 | 0x0800;
const IN_IGNORED = 0x8000;
/** Of `struct inotify_event` before its name, whose length is its last member. */
export const EVENT_SIZE = 16;

interface Watcher {
  readonly changed: () => void;
  failed: (error: Error) => void;
}

/** Of every watch; the kernel has few instances, 128 for each user. */
const watchers = new Map<number, Set<Watcher>>();
let inotify = -1;

function tell(watch: number, mask: number): void {
  // Events without a watch mean that events were lost.
  const told = watch < 0 ? [...watchers.values()].flatMap((each) => [...each]) : [...(watchers.get(watch) ?? [])];
  if (mask & IN_IGNORED) {
    watchers.delete(watch);
    for (const { failed } of told) failed(new Error("the directory was removed"));
  }
  for (const { changed } of told) changed();
}

async function tellEvents(): Promise<never> {
  const bytes = new Uint8Array(CHUNK);
  const view = new DataView(bytes.buffer);
  for (;;) {
    await ready(inotify, "read");
    const size = host.read(inotify, bytes);
    for (let at = 0; at < size; at += EVENT_SIZE + view.getUint32(at + 12, true))
      tell(view.getInt32(at, true), view.getUint32(at + 4, true));
  }
}

/**
 * Reports each change of a directory's entries or of a file in it. @throws if the kernel refuses a watch (ENOSPC,
 * EMFILE)
 */
export function watch(directory: string, changed: () => void): FSWatcher {
  if (inotify < 0) {
    inotify = checked(host.inotifyInit(INOTIFY_FLAGS), "watch", directory);
    void tellEvents();
  }
  const id = checked(host.inotifyAdd(inotify, directory, WATCHED), "watch", directory);
  const watcher: Watcher = { changed, failed: () => undefined };
  const same = watchers.get(id) ?? new Set();
  watchers.set(id, same.add(watcher));
  return {
    close: () => {
      if (!same.delete(watcher) || same.size > 0 || watchers.get(id) !== same) return;
      watchers.delete(id);
      host.inotifyRemove(inotify, id);
    },
    on: (_, listener) => {
      watcher.failed = listener;
    },
  };
}

export const linkSync = (existing: string, path: string): void =>
  void checked(host.link(existing, path), "link", existing, path);
export const symlinkSync = (target: string, path: string): void =>
  void checked(host.symlink(target, path), "symlink", target, path);
export const renameSync = (from: string, to: string): void => void checked(host.rename(from, to), "rename", from, to);
export const unlinkSync = (path: string): void => void checked(host.unlink(path, 0), "unlink", path);
export const mkdirSync = (path: string, mode: number): void => void checked(host.mkdir(path, mode), "mkdir", path);
export const rmdirSync = (path: string): void => void checked(host.unlink(path, AT_REMOVEDIR), "rmdir", path);
export const chownSync = (path: string, uid: number, gid: number): void =>
  void checked(host.chown(path, uid, gid), "chown", path);
