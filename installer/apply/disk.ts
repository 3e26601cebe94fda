import { chownSync, linkSync, lstatSync, mkdirSync, renameSync, rmdirSync, symlinkSync, unlinkSync } from "node:fs";
import { reasonOf } from "../../cni/errors";
import { apart } from "../../system/child";
import { randomUUID } from "../../system/crypto";
import { exchangeSync } from "../../system/exchange";
import { copyFileSync, createFileSync, isSameSync, settleSync } from "../../system/fs";
import { isOpened } from "../../system/opened";
import { dirname } from "../../system/path";
import type { Change } from "../plan/change";
import type { Owner, Seen } from "../state/node-state";
import { TEMPORARY } from "../state/paths";
import type { PluginFile } from "../state/plugin-file";

/**
 * The file operations of the installer, one by one, so that a test can stop at each of them. They run asynchronously:
 * on a slow disk each may take minutes.
 */
export interface Disk {
  /** Creates a new file, with its content synced to disk. */
  create(path: string, bytes: Uint8Array, mode: number, owner?: Owner): void;
  /** Creates a copy of a file, with its content synced to disk. */
  copy(from: string, path: string, mode: number): void;
  /** Creates a hard link. @throws if the file system or its protection of other users' files refuses it */
  name(path: string, existing: string): void;
  /** Creates a symbolic link. */
  link(path: string, target: string): void;
  /** Renames atomically, and replaces the target. */
  rename(from: string, to: string): void;
  /** Exchanges two names atomically. @throws if one does not exist, or if the file system cannot do it */
  exchange(one: string, other: string): void;
  /** Creates a directory unless it exists. */
  makeDirectory(path: string): void;
  /** Removes a directory if it exists and is empty. */
  removeDirectory(path: string): void;
  /** Removes a file if it exists. */
  remove(path: string): void;
  /** Syncs a file's content, or a directory's entries, to disk. */
  settle(path: string): void;
  /** Whether another process opens a directory after an action of this one. @throws if that cannot be observed */
  isOpened(directory: string, meanwhile: () => Promise<unknown>): Promise<boolean>;
}

/** How long a container runtime may take to read its configuration again. */
const REREAD_MS = 3_000;

const EXECUTABLE = 0o755;

/** Ignores errors with one of these codes. */
function except(codes: readonly string[], work: () => void): void {
  try {
    work();
  } catch (error) {
    if (!codes.includes(code(error) ?? "")) throw error;
  }
}

/** The node's own file system. */
export const nodeDisk: Disk = {
  create: (path, bytes, mode, owner) => {
    createFileSync(path, bytes, mode);
    if (owner === undefined) return;
    try {
      chownSync(path, owner.uid, owner.gid);
    } catch {
      // The content matters; the caller reports a wrong owner.
    }
  },
  copy: copyFileSync,
  name: (path, existing) => linkSync(existing, path),
  link: (path, target) => symlinkSync(target, path),
  rename: renameSync,
  exchange: exchangeSync,
  makeDirectory: (path) => except(["EEXIST"], () => mkdirSync(path, 0o700)),
  removeDirectory: (path) => except(["ENOENT", "ENOTEMPTY"], () => rmdirSync(path)),
  remove: (path) => except(["ENOENT"], () => unlinkSync(path)),
  settle: settleSync,
  isOpened: (directory, meanwhile) => isOpened(directory, meanwhile, REREAD_MS),
};

/** The file changed after planning: applying the change would undo another program's work. */
export class OutOfDate extends Error {
  static readonly code = "OUT_OF_DATE";
  override readonly name = "OutOfDate";
  /** The result of the changes. */
  readonly code = OutOfDate.code;
  constructor({ path }: Seen) {
    super(`${path} has just been changed`);
  }
}

/** A hard link if possible, which keeps owner, times and attributes; else a copy. */
function keep(path: string, change: Extract<Change, { readonly do: "keep" }>, disk: Disk): void {
  try {
    disk.name(path, change.from);
  } catch {
    disk.create(path, change.bytes, change.mode, change.owner);
  }
}

/**
 * Copies an executable to its directory under a temporary name, and runs VERSION there. Returns why it does not run on
 * this node. The copy then stays: the next try runs it again without writing, which spares an edge node's flash memory.
 */
export async function stage(image: string, path: string, disk: Disk, plugin: PluginFile): Promise<string | undefined> {
  const temporary = `${path}${TEMPORARY}`;
  if (!plugin.isCopy(image, temporary)) {
    await apart(() => {
      disk.remove(temporary);
      try {
        disk.copy(image, temporary, EXECUTABLE);
      } catch (error) {
        disk.remove(temporary);
        throw error;
      }
    });
  }
  const why = await plugin.failure(temporary, image);
  return why === undefined ? undefined : `this image's plugin does not answer VERSION on this node: ${why}`;
}

/**
 * Makes the container runtime read its configuration again: containerd does so when a file is removed, CRI-O when one
 * is created. Neither watches subfolders. @param path of a file that runtimes do not read
 */
function reread(path: string, disk: Disk): void {
  disk.remove(path);
  disk.create(path, new Uint8Array(), 0o600);
  disk.remove(path);
}

/**
 * The same, and returns whether the runtime then reads a folder of drop-ins, which is created if absent; undefined if
 * the kernel cannot report it. @param path of a file that runtimes do not read
 */
export async function isReread(path: string, folder: string, disk: Disk): Promise<boolean | undefined> {
  await apart(() => disk.makeDirectory(folder));
  try {
    return await disk.isOpened(folder, () => apart(() => reread(path, disk)));
  } catch {
    await apart(() => reread(path, disk));
    return undefined;
  }
}

/** What was done of some changes. */
interface Applied {
  /** How many were applied, in their order. */
  readonly count: number;
  /** Why the next one was not; its code is {@link OutOfDate.code} if the file has changed since it was planned. */
  readonly failure?: { readonly message: string; readonly code?: string | undefined };
}

/**
 * Applies changes in their order, each atomically and durably, up to the first one that fails. They are made together,
 * since each process apart takes a millisecond.
 * @param holds whether a file still has the content that a change was planned for, asked right before it takes effect
 */
export const apply = (changes: readonly Change[], disk: Disk, holds: (seen: Seen) => boolean): Promise<Applied> =>
  apart(() => {
    for (const [count, change] of changes.entries()) {
      try {
        make(change, disk, holds);
      } catch (error) {
        return { count, failure: { message: reasonOf(error), code: code(error) } };
      }
    }
    return { count: changes.length };
  });

const code = (error: unknown) => (error as { readonly code?: string }).code;

/**
 * Gives a file a name at which another program may write at this moment: only what comes out of an exchange shows what was
 * replaced. If it is not as seen, it is given back.
 */
function place(
  from: string,
  { path, bytes, seen }: Extract<Change, { readonly bytes: Uint8Array }>,
  disk: Disk,
  holds: (seen: Seen) => boolean,
): void {
  if (seen === undefined) {
    disk.rename(from, path);
    return;
  }
  try {
    if (seen.bytes === undefined) disk.name(path, from);
    else disk.exchange(from, path);
  } catch (error) {
    if (code(error) === "ENOENT" || !holds(seen)) throw new OutOfDate(seen);
    // The file system has no hard links or exchanges, a policy forbids them, or the file cannot be read.
    disk.rename(from, path);
    return;
  }
  if (seen.bytes === undefined || holds({ path: from, bytes: seen.bytes })) {
    disk.remove(from);
    return;
  }
  disk.exchange(from, path);
  // It may have been written once more in between.
  if (!holds({ path: from, bytes })) disk.exchange(from, path);
  throw new OutOfDate(seen);
}

/** Whether two names are of one file: rename(2) then does nothing. */
function isOneFile(one: string, other: string): boolean {
  const [found, same] = [one, other].map((path) => lstatSync(path, { throwIfNoEntry: false }));
  return found !== undefined && found.ino === same?.ino && found.dev === same.dev;
}

/** Gives a file that was set aside back to its owner, who has just written it; unless it has been written once more. */
function giveBack({ from, path }: Extract<Change, { readonly do: "aside" }>, disk: Disk): void {
  except(["EEXIST"], () => disk.name(from, path));
  disk.remove(path);
  throw new OutOfDate({ path: from });
}

/**
 * Puts the copy of the image's plugin into place. The copy is first renamed to a name that no other installer uses, since
 * one of another version may have replaced it.
 */
function install({ image, path }: Extract<Change, { readonly do: "install" }>, copy: string, disk: Disk): void {
  const own = `${path}.${randomUUID()}${TEMPORARY}`;
  try {
    disk.rename(copy, own);
    // The installer that copied it may have been killed before that.
    disk.settle(own);
    if (!isSameSync(image, own)) throw new OutOfDate({ path: copy });
    disk.rename(own, path);
  } catch (error) {
    disk.remove(own);
    throw code(error) === "ENOENT" ? new OutOfDate({ path: copy }) : error;
  }
}

function make(change: Change, disk: Disk, holds: (seen: Seen) => boolean): void {
  const temporary = `${change.path}${TEMPORARY}`;
  const confirm = () => {
    if (change.seen !== undefined && !holds(change.seen)) throw new OutOfDate(change.seen);
  };
  const replace = (create: () => void, put = () => disk.rename(temporary, change.path)) => {
    disk.remove(temporary);
    try {
      create();
      confirm();
      put();
    } catch (error) {
      disk.remove(temporary);
      throw error;
    }
  };
  const settle = () => disk.settle(dirname(change.path));
  switch (change.do) {
    case "write":
      replace(
        () => disk.create(temporary, change.bytes, change.mode, change.owner),
        () => place(temporary, change, disk, holds),
      );
      break;
    case "install":
      install(change, temporary, disk);
      break;
    case "keep":
      replace(() => keep(temporary, change, disk));
      break;
    case "link":
      replace(() => disk.link(temporary, change.target));
      break;
    case "restore":
      confirm();
      place(change.from, change, disk, holds);
      break;
    case "aside":
      confirm();
      // An installer was killed while it gave the file back.
      if (isOneFile(change.from, change.path)) disk.remove(change.path);
      try {
        disk.rename(change.from, change.path);
      } catch (error) {
        // Another installer has already renamed it.
        throw code(error) === "ENOENT" ? new OutOfDate({ path: change.from }) : error;
      }
      if (!holds({ path: change.path, bytes: change.seen?.bytes })) giveBack(change, disk);
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
  // The directory of a file to remove may not exist.
  if (change.do === "remove" || change.do === "rmdir") except(["ENOENT"], settle);
  else settle();
}
