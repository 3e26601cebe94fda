import * as fs from "../../system/fs";
import { dirname } from "../../system/path";
import type { Change } from "../plan/change";
import type { Owner, Seen } from "../state/node-state";
import { TEMPORARY } from "../state/paths";

/**
 * The file-changing operations of the installer, one by one, so that a test can stop at each of them. None of them keeps
 * the process from doing other work: on a slow disk each may take minutes.
 */
export interface Disk {
  /** Creates a file that is not there yet, with its content safe on the disk. */
  create(path: string, bytes: Uint8Array, mode: number, owner?: Owner): Promise<void>;
  /** Creates a copy of a file, with its content safe on the disk. */
  copy(from: string, path: string, mode: number): Promise<void>;
  /** Gives a file a second name. @throws where the file system or its guard of other users' files refuses that */
  name(path: string, existing: string): Promise<void>;
  /** Creates a symbolic link. */
  link(path: string, target: string): Promise<void>;
  /** Puts one name in another's place in one step. */
  rename(from: string, to: string): Promise<void>;
  /** Creates a directory; it may be there already. */
  makeDirectory(path: string): Promise<void>;
  /** Removes a directory; it may be gone already, and is left alone where others have put something in it. */
  removeDirectory(path: string): Promise<void>;
  /** Removes a file; it may be gone already. */
  remove(path: string): Promise<void>;
  /** Makes the content of a file, or the names in a directory, safe on the disk. */
  settle(path: string): Promise<void>;
}

/** Does what may fail with one of these codes. */
async function except(codes: readonly string[], result: Promise<unknown>): Promise<void> {
  try {
    await result;
  } catch (error) {
    if (!codes.includes((error as { readonly code?: string }).code ?? "")) throw error;
  }
}

/** The node's own file system. */
export const nodeDisk: Disk = {
  create: async (path, bytes, mode, owner) => {
    await fs.createFile(path, bytes, mode);
    // The content is what counts; who compares the owners says so.
    if (owner !== undefined) await fs.chown(path, owner.uid, owner.gid).catch(() => undefined);
  },
  copy: fs.copyFile,
  name: (path, existing) => fs.link(existing, path),
  link: (path, target) => fs.symlink(target, path),
  rename: fs.rename,
  makeDirectory: (path) => except(["EEXIST"], fs.mkdir(path, 0o700)),
  removeDirectory: (path) => except(["ENOENT", "ENOTEMPTY"], fs.rmdir(path)),
  remove: (path) => except(["ENOENT"], fs.unlink(path)),
  settle: fs.sync,
};

/** Somebody has changed a file since the change of it was planned, which would undo his work. */
export class OutOfDate extends Error {
  override readonly name = "OutOfDate";
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
  /** Why an executable does not run on this node; undefined where it does. */
  readonly failure: (path: string, source: string) => Promise<string | undefined>;
}

/** The very file where that is allowed, so that its owner, times and attributes are kept, too; else a copy. */
async function keep(path: string, change: Extract<Change, { readonly do: "keep" }>, disk: Disk): Promise<void> {
  try {
    await disk.name(path, change.from);
  } catch {
    await disk.create(path, change.bytes, change.mode, change.owner);
  }
}

/**
 * Copies an executable to where it is to lie, under a temporary name, and asks it there. Tells why it does not run on this
 * node; it then stays: the next try asks it again and writes nothing, which an edge node's flash memory would suffer from.
 */
export async function stage(
  { from, path, mode }: Extract<Change, { readonly do: "install" }>,
  disk: Disk,
  { isCopy, failure }: Pick<Checks, "isCopy" | "failure">,
): Promise<string | undefined> {
  const temporary = `${path}${TEMPORARY}`;
  if (isCopy(from, temporary)) {
    await disk.settle(temporary);
  } else {
    await disk.remove(temporary);
    try {
      await disk.copy(from, temporary, mode);
    } catch (error) {
      await disk.remove(temporary);
      throw error;
    }
  }
  const why = await failure(temporary, from);
  return why === undefined ? undefined : `this image's plugin does not answer VERSION on this node: ${why}`;
}

/** Puts an executable in place that was seen to run where it lies. */
async function install(change: Extract<Change, { readonly do: "install" }>, disk: Disk, checks: Checks): Promise<void> {
  const why = await stage(change, disk, checks);
  if (why !== undefined) throw new Error(`${why}; ${change.path} stays as it is`);
  await disk.rename(`${change.path}${TEMPORARY}`, change.path);
}

/**
 * Applies one change; afterwards it is on the disk, or nothing has changed.
 * @throws OutOfDate where what it was planned by, looked at again in the last moment, does not hold any more
 */
export async function apply(change: Change, disk: Disk, checks: Checks): Promise<void> {
  const temporary = `${change.path}${TEMPORARY}`;
  const confirm = () => {
    if (change.seen !== undefined && !checks.holds(change.seen)) throw new OutOfDate(change.seen);
  };
  const replace = async (make: () => Promise<void>) => {
    await disk.remove(temporary);
    try {
      await make();
      confirm();
      await disk.rename(temporary, change.path);
    } catch (error) {
      await disk.remove(temporary);
      throw error;
    }
  };
  switch (change.do) {
    case "write":
      await replace(() => disk.create(temporary, change.bytes, change.mode, change.owner));
      break;
    case "install":
      await install(change, disk, checks);
      break;
    case "keep":
      await replace(() => keep(temporary, change, disk));
      break;
    case "link":
      await replace(() => disk.link(temporary, change.target));
      break;
    case "rename":
      confirm();
      await disk.rename(change.from, change.path).catch((error) => {
        // Another installer that removes what was installed has been faster.
        throw error.code === "ENOENT" ? new OutOfDate({ path: change.from }) : error;
      });
      break;
    case "mkdir":
      await disk.makeDirectory(change.path);
      break;
    case "rmdir":
      await disk.removeDirectory(change.path);
      break;
    case "remove":
      confirm();
      await disk.remove(change.path);
      break;
  }
  const settled = disk.settle(dirname(change.path));
  // What is to be gone may never have had a directory.
  await (change.do === "remove" || change.do === "rmdir" ? except(["ENOENT"], settled) : settled);
}
