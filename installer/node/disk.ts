import * as fs from "node:fs";
import { dirname } from "node:path";

/** User and group of a file. */
export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** The file-changing operations of the installer, one by one, so that a test can stop at each of them. */
export interface Disk {
  /** Creates a file that is not there yet, with its content safe on the disk. */
  create(path: string, bytes: Uint8Array, mode: number, owner?: Owner): void;
  /** Creates a copy of a file, with its content safe on the disk. */
  copy(from: string, path: string, mode: number): void;
  /** Gives a file a second name. @throws where the file system or its guard of other users' files refuses that */
  name(path: string, existing: string): void;
  /** Creates a symbolic link. */
  link(path: string, target: string): void;
  /** Puts one name in another's place in one step. */
  rename(from: string, to: string): void;
  /** Creates a directory; it may be there already. */
  makeDirectory(path: string): void;
  /** Removes a directory; it may be gone already, and is left alone where others have put something in it. */
  removeDirectory(path: string): void;
  /** Removes a file; it may be gone already. */
  remove(path: string): void;
  /** Makes the names in a directory safe on the disk. */
  settle(directory: string): void;
}

function withFile(path: string, flags: string, mode: number, use: (descriptor: number) => void): void {
  const descriptor = fs.openSync(path, flags, mode);
  try {
    use(descriptor);
    fs.fsyncSync(descriptor);
  } finally {
    fs.closeSync(descriptor);
  }
}

function giveIfAllowed(descriptor: number, { uid, gid }: Owner): void {
  try {
    fs.fchownSync(descriptor, uid, gid);
  } catch {
    // The content is what counts; who compares the two says so.
  }
}

/** The node's own file system. */
export const nodeDisk: Disk = {
  create: (path, bytes, mode, owner) =>
    withFile(path, "wx", mode, (descriptor) => {
      fs.writeFileSync(descriptor, bytes);
      if (owner !== undefined) giveIfAllowed(descriptor, owner);
      fs.fchmodSync(descriptor, mode);
    }),
  copy: (from, path, mode) => {
    fs.copyFileSync(from, path, fs.constants.COPYFILE_EXCL);
    withFile(path, "r", mode, (descriptor) => fs.fchmodSync(descriptor, mode));
  },
  name: (path, existing) => fs.linkSync(existing, path),
  link: (path, target) => fs.symlinkSync(target, path),
  rename: (from, to) => fs.renameSync(from, to),
  makeDirectory: (path) => void fs.mkdirSync(path, { recursive: true }),
  removeDirectory: (path) => {
    try {
      fs.rmdirSync(path);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== "ENOENT" && code !== "ENOTEMPTY") throw error;
    }
  },
  remove: (path) => fs.rmSync(path, { force: true }),
  settle: (directory) => withFile(directory, "r", 0, () => undefined),
};

/** What a file is to hold. */
interface Content {
  readonly bytes: Uint8Array;
  readonly mode: number;
  /** @default who runs this */
  readonly owner?: Owner | undefined;
}

/** What a file held when a change was planned; without bytes: there was none. */
export interface Seen {
  readonly path: string;
  readonly bytes?: Uint8Array | undefined;
}

/** Somebody has changed a file since the change of it was planned, which would undo his work. */
export class OutOfDate extends Error {
  override readonly name = "OutOfDate";
  constructor({ path }: Seen) {
    super(`${path} has just been changed`);
  }
}

/** One planned change of one file. Applied in order; each is atomic for whoever reads the file. */
export type Change = Planned & {
  /** Made only while this holds. */
  readonly seen?: Seen;
};

type Planned =
  | ({ readonly do: "write"; readonly path: string } & Content)
  | { readonly do: "copy"; readonly from: string; readonly path: string; readonly mode: number }
  | ({ readonly do: "keep"; readonly from: string; readonly path: string } & Content)
  | { readonly do: "link"; readonly path: string; readonly target: string }
  | { readonly do: "rename"; readonly from: string; readonly path: string }
  | { readonly do: "mkdir" | "rmdir" | "remove"; readonly path: string };

/** No runtime reads a file of this extension, and {@link isTemporary} finds what a crash left behind. */
const TEMPORARY = ".linkerd-cni-tmp";

export function isTemporary(name: string): boolean {
  return name.endsWith(TEMPORARY);
}

/** The very file where that is allowed, so that its owner, times and attributes are kept, too; else a copy. */
function keep(path: string, change: Extract<Change, { readonly do: "keep" }>, disk: Disk): void {
  try {
    disk.name(path, change.from);
  } catch {
    disk.create(path, change.bytes, change.mode, change.owner);
  }
}

/**
 * Applies one change; afterwards it is on the disk, or nothing has changed.
 * @throws OutOfDate where what it was planned by, looked at again in the last moment, does not hold any more
 */
export function apply(change: Change, disk: Disk, holds: (seen: Seen) => boolean = () => true): void {
  const temporary = `${change.path}${TEMPORARY}`;
  const confirm = () => {
    if (change.seen !== undefined && !holds(change.seen)) throw new OutOfDate(change.seen);
  };
  const replace = (make: () => void) => {
    disk.remove(temporary);
    try {
      make();
      confirm();
      disk.rename(temporary, change.path);
    } catch (error) {
      disk.remove(temporary);
      throw error;
    }
  };
  switch (change.do) {
    case "write":
      replace(() => disk.create(temporary, change.bytes, change.mode, change.owner));
      break;
    case "copy":
      replace(() => disk.copy(change.from, temporary, change.mode));
      break;
    case "keep":
      replace(() => keep(temporary, change, disk));
      break;
    case "link":
      replace(() => disk.link(temporary, change.target));
      break;
    case "rename":
      confirm();
      disk.rename(change.from, change.path);
      break;
    case "mkdir":
      disk.makeDirectory(change.path);
      break;
    case "rmdir":
      disk.removeDirectory(change.path);
      break;
    case "remove":
      confirm();
      disk.remove(change.path);
      break;
  }
  if (change.do === "remove" || change.do === "rmdir") settleIfAny(dirname(change.path), disk);
  else disk.settle(dirname(change.path));
}

/** What is to be gone may never have had a directory. */
function settleIfAny(directory: string, disk: Disk): void {
  try {
    disk.settle(directory);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}
