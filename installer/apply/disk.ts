import * as fs from "../../system/fs";
import { dirname } from "../../system/path";
import type { Change } from "../plan/change";
import type { Owner, Seen } from "../state/node-state";
import { TEMPORARY } from "../state/paths";

/**
 * The file-changing operations of the installer, one by one, so that a test can stop at each of them. They run apart from
 * the process, which does other work meanwhile: on a slow disk each may take minutes.
 */
export interface Disk {
  /** Creates a file that is not there yet, with its content safe on the disk. */
  create(path: string, bytes: Uint8Array, mode: number, owner?: Owner): void;
  /** Creates a copy of a file, with its content safe on the disk. */
  copy(from: string, path: string, mode: number): void;
  /** Gives a file a second name. @throws if the file system or its guard of other users' files refuses that */
  name(path: string, existing: string): void;
  /** Creates a symbolic link. */
  link(path: string, target: string): void;
  /** Puts one name in another's place in one step. */
  rename(from: string, to: string): void;
  /** Creates a directory; it may be there already. */
  makeDirectory(path: string): void;
  /** Removes a directory; it may be gone already, and is left alone if others have put something in it. */
  removeDirectory(path: string): void;
  /** Removes a file; it may be gone already. */
  remove(path: string): void;
  /** Makes the content of a file, or the names in a directory, safe on the disk. */
  settle(path: string): void;
  /** Whether another process opens a directory once this one has done something. @throws if that cannot be seen */
  isOpened(directory: string, meanwhile: () => Promise<unknown>): Promise<boolean>;
}

/** How long a container runtime may take to read its configuration again. */
const REREAD_MS = 3_000;

/** Does what may fail with one of these codes. */
function except(codes: readonly string[], work: () => void): void {
  try {
    work();
  } catch (error) {
    if (!codes.includes((error as { readonly code?: string }).code ?? "")) throw error;
  }
}

/** The node's own file system. */
export const nodeDisk: Disk = {
  create: (path, bytes, mode, owner) => {
    fs.createFileSync(path, bytes, mode);
    if (owner === undefined) return;
    try {
      fs.chownSync(path, owner.uid, owner.gid);
    } catch {
      // The content is what counts; who compares the owners says so.
    }
  },
  copy: fs.copyFileSync,
  name: (path, existing) => fs.linkSync(existing, path),
  link: (path, target) => fs.symlinkSync(target, path),
  rename: fs.renameSync,
  makeDirectory: (path) => except(["EEXIST"], () => fs.mkdirSync(path, 0o700)),
  removeDirectory: (path) => except(["ENOENT", "ENOTEMPTY"], () => fs.rmdirSync(path)),
  remove: (path) => except(["ENOENT"], () => fs.unlinkSync(path)),
  settle: fs.settleSync,
  isOpened: (directory, meanwhile) => fs.isOpened(directory, meanwhile, REREAD_MS),
};

/** Another program has changed a file since the change of it was planned, which would undo its work. */
export class OutOfDate extends Error {
  static readonly code = "OUT_OF_DATE";
  override readonly name = "OutOfDate";
  /** The result of the changes. */
  readonly code = OutOfDate.code;
  constructor({ path }: Seen) {
    super(`${path} has just been changed`);
  }
}

/** What is asked in the last moment before a change takes effect. */
export interface Checks {
  /** Whether a file still holds what the change was planned by. */
  readonly holds: (seen: Seen) => boolean;
  /** Whether a file on the node is the image's own, byte for byte. */
  readonly isCopy: (source: string, copy: string) => boolean;
  /** Why an executable does not run on this node; undefined if it does. */
  readonly failure: (path: string, source: string) => Promise<string | undefined>;
}

/** The same file if that is allowed, so that its owner, times and attributes are kept; else a copy. */
function keep(path: string, change: Extract<Change, { readonly do: "keep" }>, disk: Disk): void {
  try {
    disk.name(path, change.from);
  } catch {
    disk.create(path, change.bytes, change.mode, change.owner);
  }
}

/**
 * Copies an executable to its directory, under a temporary name, and runs VERSION there. Returns why it does not run on this
 * node; it then stays: the next try asks it again and writes nothing, which an edge node's flash memory would suffer from.
 */
export async function stage(
  { from, path, mode }: Extract<Change, { readonly do: "install" }>,
  disk: Disk,
  { isCopy, failure }: Pick<Checks, "isCopy" | "failure">,
): Promise<string | undefined> {
  const temporary = `${path}${TEMPORARY}`;
  const isThere = isCopy(from, temporary);
  await fs.apart(() => {
    if (isThere) return disk.settle(temporary);
    disk.remove(temporary);
    try {
      disk.copy(from, temporary, mode);
    } catch (error) {
      disk.remove(temporary);
      throw error;
    }
  });
  const why = await failure(temporary, from);
  return why === undefined ? undefined : `this image's plugin does not answer VERSION on this node: ${why}`;
}

/**
 * Has the container runtime read its configuration again: containerd does so when a file is removed, CRI-O when one is
 * created. Neither watches the folders below.
 * @param path of a file that runtimes do not read
 */
function reread(path: string, disk: Disk): void {
  disk.remove(path);
  disk.create(path, new Uint8Array(), 0o600);
  disk.remove(path);
}

/**
 * The same, and whether the runtime then reads a folder of drop-ins, which is made if there is none; undefined if the
 * kernel does not tell.
 * @param path of a file that runtimes do not read
 */
export async function isReread(path: string, folder: string, disk: Disk): Promise<boolean | undefined> {
  await fs.apart(() => disk.makeDirectory(folder));
  try {
    return await disk.isOpened(folder, () => fs.apart(() => reread(path, disk)));
  } catch {
    await fs.apart(() => reread(path, disk));
    return undefined;
  }
}

/**
 * Applies one change; afterwards it is on the disk, or nothing has changed.
 * @throws OutOfDate if what it was planned by, looked at again in the last moment, does not hold any more
 */
export async function apply(change: Change, disk: Disk, checks: Checks): Promise<void> {
  if (change.do === "install") {
    // Only a file that was seen to run in its directory is put in place.
    const why = await stage(change, disk, checks);
    if (why !== undefined) throw new Error(`${why}; ${change.path} stays as it is`);
  }
  await fs.apart(() => make(change, disk, checks.holds));
}

function make(change: Change, disk: Disk, holds: Checks["holds"]): void {
  const below = change.do === "write" ? change.temporary : undefined;
  const temporary = below ?? `${change.path}${TEMPORARY}`;
  const confirm = () => {
    if (change.seen !== undefined && !holds(change.seen)) throw new OutOfDate(change.seen);
  };
  const replace = (create: () => void) => {
    disk.remove(temporary);
    try {
      create();
      confirm();
      disk.rename(temporary, change.path);
    } catch (error) {
      disk.remove(temporary);
      throw error;
    }
  };
  const settle = () => disk.settle(dirname(change.path));
  switch (change.do) {
    case "write":
      replace(() => disk.create(temporary, change.bytes, change.mode, change.owner));
      break;
    case "install":
      disk.rename(temporary, change.path);
      break;
    case "keep":
      replace(() => keep(temporary, change, disk));
      break;
    case "link":
      replace(() => disk.link(temporary, change.target));
      break;
    case "rename":
      confirm();
      try {
        disk.rename(change.from, change.path);
      } catch (error) {
        // Another installer that removes what was installed has been faster.
        throw (error as { code?: string }).code === "ENOENT" ? new OutOfDate({ path: change.from }) : error;
      }
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
    case "reread":
      reread(change.path, disk);
      break;
  }
  // What is to be gone may never have had a directory.
  if (change.do === "remove" || change.do === "rmdir") except(["ENOENT"], settle);
  else settle();
}
