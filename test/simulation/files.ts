/** The files of a simulated node, in memory: what the kernel does with folders, links, hard links and renames. */
import type { Clock, Random } from "./clock";
import { below } from "./clock";

/** An error as Node's functions throw it. */
export class FileError extends Error {
  constructor(
    readonly code: string,
    path: string,
  ) {
    super(`${code}: ${path}`);
  }
}

/** What inotify reports of an entry of a directory. */
export type Event = "create" | "write" | "attributes" | "moved from" | "moved to" | "remove";
type Watch = (event: Event, name: string) => void;

type Entries = Map<string, Inode>;

const NO_BYTES = new Uint8Array();
const NO_ENTRIES: Entries = new Map();

/** A file, directory, link or socket. Names are entries of directories: a hard link is a second one. */
export class Inode {
  uid = 0;
  gid = 0;
  bytes: Uint8Array = NO_BYTES;
  /** What a loss of power leaves of the bytes. */
  synced: Uint8Array = NO_BYTES;
  entries: Entries;
  /** The entries since the directory was last synced: a loss of power leaves any of them. */
  states: Entries[] = [NO_ENTRIES];
  target = "";
  mtimeMs: number;
  ctimeMs: number;
  readonly watches = new Set<Watch>();
  /** Called when a process opens the directory. */
  readonly openings = new Set<() => void>();
  /** The directory and name of the last entry. */
  place: { readonly directory: Inode; readonly name: string } | undefined;

  constructor(
    readonly ino: number,
    readonly kind: "file" | "directory" | "link" | "socket",
    public mode: number,
    now: number,
  ) {
    this.entries = kind === "directory" ? new Map() : NO_ENTRIES;
    this.mtimeMs = now;
    this.ctimeMs = now;
  }

  report(event: Event, name: string): void {
    for (const watch of [...this.watches]) watch(event, name);
  }
}

interface Found {
  readonly directory: Inode;
  readonly name: string;
  readonly inode: Inode | undefined;
  readonly path: string;
}

const LONGEST_CHAIN = 20;
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** What is computed of bytes, which never change in place, once. */
function once<T>(compute: (bytes: Uint8Array) => T): (bytes: Uint8Array) => T {
  const known = new WeakMap<Uint8Array, { readonly made: T }>();
  return (bytes) => {
    let found = known.get(bytes);
    if (found === undefined) {
      found = { made: compute(bytes) };
      known.set(bytes, found);
    }
    return found.made;
  };
}

export const textOf = once((bytes) => decoder.decode(bytes));

/** Undefined if it is not JSON. */
export const jsonOf = once((bytes): unknown => {
  try {
    return JSON.parse(textOf(bytes)) ?? undefined;
  } catch {
    return undefined;
  }
});

const MOST_PATHS = 1_000;
const parts = new Map<string, readonly string[]>();

function partsOf(path: string): readonly string[] {
  let known = parts.get(path);
  if (known !== undefined) return known;
  known = path.split("/").filter((part) => part !== "" && part !== ".");
  // Names of temporary files are random.
  if (parts.size === MOST_PATHS) parts.clear();
  parts.set(path, known);
  return known;
}

/** What all views of one machine share. */
export class Disk {
  isReadOnly = false;
  isFull = false;
  /** Counts the changes of all files. */
  version = 0;
  private count = 1;

  constructor(readonly clock: Clock) {}

  /** Runs something to which the limits do not apply. */
  unlimited<T>(work: () => T): T {
    const { isFull, isReadOnly } = this;
    Object.assign(this, { isFull: false, isReadOnly: false });
    const made = work();
    Object.assign(this, { isFull, isReadOnly });
    return made;
  }

  inode(kind: Inode["kind"], mode: number): Inode {
    return new Inode(++this.count, kind, mode, this.clock.now);
  }
}

/** Files as a process sees them, from its own root: a bind mount is the same directory in two roots. */
export class Files {
  readonly root: Inode;

  constructor(readonly disk: Disk) {
    this.root = disk.inode("directory", 0o755);
  }

  /** @throws FileError unless it exists */
  inode(path: string, follow = true): Inode {
    const { inode } = this.find(path, follow);
    if (inode === undefined) throw new FileError("ENOENT", path);
    return inode;
  }

  /** Undefined if it does not exist. */
  inodeIfAny(path: string, follow = true): Inode | undefined {
    try {
      return this.find(path, follow).inode;
    } catch (error) {
      if (["ENOENT", "ENOTDIR"].includes((error as FileError).code)) return undefined;
      throw error;
    }
  }

  has(path: string): boolean {
    return this.inodeIfAny(path) !== undefined;
  }

  bytes(path: string): Uint8Array {
    const inode = this.inode(path);
    if (inode.kind === "directory") throw new FileError("EISDIR", path);
    return inode.bytes;
  }

  text(path: string): string {
    return textOf(this.bytes(path));
  }

  textIfAny(path: string): string | undefined {
    const inode = this.inodeIfAny(path);
    return inode && textOf(inode.bytes);
  }

  /** The entries of a directory, sorted. */
  list(path: string): readonly (readonly [string, Inode])[] {
    const inode = this.inode(path);
    if (inode.kind !== "directory") throw new FileError("ENOTDIR", path);
    return [...inode.entries.keys()].sort().map((name) => [name, inode.entries.get(name) as Inode]);
  }

  names(path: string): string[] {
    return this.list(path).map(([name]) => name);
  }

  realpath(path: string): string {
    const found = this.find(path, true);
    if (found.inode === undefined) throw new FileError("ENOENT", path);
    return found.path;
  }

  /** Creates an entry. @throws FileError if the name exists */
  add(path: string, inode: Inode, event: Event = "create"): Inode {
    this.writable(path);
    const { directory, name, inode: there } = this.find(path, false);
    if (there !== undefined) throw new FileError("EEXIST", path);
    this.enter(directory, name, inode);
    directory.report(event, name);
    return inode;
  }

  create(path: string, mode: number): Inode {
    return this.add(path, this.disk.inode("file", mode));
  }

  makeDirectory(path: string, mode = 0o755): Inode {
    return this.add(path, this.disk.inode("directory", mode));
  }

  makeDirectories(path: string): void {
    let directory = this.root;
    for (const name of partsOf(path)) {
      const inode = directory.entries.get(name) ?? this.disk.inode("directory", 0o755);
      if (!directory.entries.has(name)) this.enter(directory, name, inode);
      directory = inode;
    }
  }

  addLink(target: string, path: string): void {
    this.add(path, this.disk.inode("link", 0o777)).target = target;
  }

  addName(existing: string, path: string): void {
    const inode = this.inode(existing, false);
    this.add(path, inode);
    inode.ctimeMs = this.disk.clock.now;
  }

  /** Sets the content of a file; @param at undefined: replaces all */
  put(inode: Inode, bytes: Uint8Array): void {
    if (this.disk.isFull && bytes.length > inode.bytes.length) throw new FileError("ENOSPC", "write");
    inode.bytes = bytes;
    this.disk.version++;
    inode.mtimeMs = inode.ctimeMs = this.disk.clock.now;
    if (inode.place !== undefined) inode.place.directory.report("write", inode.place.name);
  }

  /** Writes a file in place, as a shell's redirection does. */
  write(path: string, text: string, mode = 0o644): Inode {
    const inode = this.inodeIfAny(path) ?? this.create(path, mode);
    this.put(inode, encoder.encode(text));
    return inode;
  }

  rename(from: string, to: string): void {
    this.writable(to);
    const source = this.find(from, false);
    const target = this.find(to, false);
    const { inode } = source;
    if (inode === undefined) throw new FileError("ENOENT", from);
    if (target.inode === inode) return;
    if (target.inode?.kind === "directory") throw new FileError("EISDIR", to);
    this.leave(source.directory, source.name);
    this.enter(target.directory, target.name, inode);
    inode.ctimeMs = this.disk.clock.now;
    source.directory.report("moved from", source.name);
    target.directory.report("moved to", target.name);
  }

  /** Swaps two names, as renameat2(2) with RENAME_EXCHANGE. */
  exchange(one: string, other: string): void {
    this.writable(one);
    const [left, right] = [this.find(one, false), this.find(other, false)];
    if (left.inode === undefined || right.inode === undefined) throw new FileError("ENOENT", one);
    this.enter(left.directory, left.name, right.inode);
    this.enter(right.directory, right.name, left.inode);
    for (const { directory, name } of [left, right]) {
      directory.report("moved from", name);
      directory.report("moved to", name);
    }
  }

  remove(path: string): void {
    this.writable(path);
    const { directory, name, inode } = this.find(path, false);
    if (inode === undefined) throw new FileError("ENOENT", path);
    if (inode.kind === "directory") throw new FileError("EISDIR", path);
    this.leave(directory, name);
    inode.ctimeMs = this.disk.clock.now;
    directory.report("remove", name);
  }

  removeDirectory(path: string): void {
    this.writable(path);
    const { directory, name, inode } = this.find(path, false);
    if (inode === undefined) throw new FileError("ENOENT", path);
    if (inode.kind !== "directory") throw new FileError("ENOTDIR", path);
    if (inode.entries.size > 0) throw new FileError("ENOTEMPTY", path);
    this.leave(directory, name);
    directory.report("remove", name);
  }

  /** Mounts a directory of another view, or of this one, at a path. */
  bind(path: string, directory: Inode): void {
    this.makeDirectories(path.slice(0, path.lastIndexOf("/")));
    const { directory: parent, name } = this.find(path, false);
    parent.entries.set(name, directory);
  }

  private writable(path: string): void {
    if (this.disk.isReadOnly) throw new FileError("EROFS", path);
  }

  private enter(directory: Inode, name: string, inode: Inode): void {
    directory.entries.set(name, inode);
    inode.place = { directory, name };
    this.changed(directory);
  }

  private leave(directory: Inode, name: string): void {
    directory.entries.delete(name);
    this.changed(directory);
  }

  private changed(directory: Inode): void {
    this.disk.version++;
    directory.states.push(new Map(directory.entries));
    directory.mtimeMs = directory.ctimeMs = this.disk.clock.now;
  }

  private find(path: string, follow: boolean, links = 0): Found {
    if (links > LONGEST_CHAIN) throw new FileError("ELOOP", path);
    const names = partsOf(path);
    let directory = this.root;
    let inode: Inode | undefined = this.root;
    for (let at = 0; at < names.length; at++) {
      if (inode === undefined) throw new FileError("ENOENT", path);
      if (inode.kind !== "directory") throw new FileError("ENOTDIR", path);
      directory = inode;
      inode = directory.entries.get(names[at] as string);
      if (inode?.kind === "link" && (follow || at < names.length - 1)) {
        const parent = inode.target.startsWith("/") ? "" : `/${names.slice(0, at).join("/")}/`;
        return this.find([`${parent}${inode.target}`, ...names.slice(at + 1)].join("/"), follow, links + 1);
      }
    }
    return { directory, name: names.at(-1) ?? "", inode, path };
  }
}

/** Syncs a file's bytes, or a directory's entries. */
export function sync(inode: Inode): void {
  inode.synced = inode.bytes;
  if (inode.kind === "directory") inode.states = [new Map(inode.entries)];
}

/** Syncs a directory and all below it. */
export function syncAll(inode: Inode): void {
  sync(inode);
  for (const each of inode.entries.values()) syncAll(each);
}

/**
 * What a loss of power leaves:
 *
 * | of | is left |
 * |---|---|
 * | a file's bytes | those that were synced last, or all |
 * | a directory's entries | those at its last sync, or after any change since |
 * | a file system in memory | nothing |
 */
export function losePower(directory: Inode, random: Random): void {
  directory.entries = new Map(directory.states[below(random, directory.states.length)]);
  for (const inode of directory.entries.values()) {
    if (inode.kind === "directory") losePower(inode, random);
    else if (random() < 0.5) inode.bytes = inode.synced;
    sync(inode);
  }
  sync(directory);
}
