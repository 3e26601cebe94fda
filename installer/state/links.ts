import { isConfigName } from "../../cni/conflist/read";
import * as fs from "../../system/fs";
import { dirname, join, resolve } from "../../system/path";
import { nameOfOriginal } from "./journal";

/** Where the node's files are mounted here. */
export interface View {
  /** Directory under which the node's own root is mounted, in parts; empty if it is the root itself. */
  readonly mountPrefix: string;
  /** Directories that are mounted, as seen from here: what is not found in them is not there. */
  readonly mounted: readonly string[];
}

/** What a path leads to. */
export interface Located {
  /** As seen from here; no link, unless they go round in circles. */
  readonly path: string;
  /** It leads out of what is mounted here: there may be a file on the node, and nothing can be said about it. */
  readonly hidden: boolean;
}

/** As many links as the kernel follows. */
const MOST_LINKS = 40;

/** Follows links as the node does: an absolute one begins at the node's root and not at this container's. */
export function locate(path: string, { mountPrefix, mounted }: View): Located {
  let onNode = mountPrefix === "" ? path : path.slice(join(mountPrefix).length);
  for (let links = 0; ; links += 1) {
    const here = join(mountPrefix === "" ? "/" : mountPrefix, onNode);
    const found = fs.lstatSync(here, { throwIfNoEntry: false });
    if (found?.isSymbolicLink() && links < MOST_LINKS) {
      onNode = resolve(dirname(onNode), fs.readlinkSync(here));
      continue;
    }
    const outside = mountPrefix !== "" && !mounted.some((directory) => here.startsWith(`${directory}/`));
    return { path: here, hidden: found === undefined && outside };
  }
}

/** The directory in which a file lies; none if its links lead nowhere: reading the file reports that. */
function directoryOf(path: string, view: View): readonly string[] {
  try {
    return [dirname(locate(path, view).path)];
  } catch {
    return [];
  }
}

/** The entries of a directory; none if it cannot be read: reading its files reports that. */
export function entriesOf(directory: string): readonly fs.Dirent[] {
  try {
    return fs.readdirSync(directory, { withFileTypes: true });
  } catch {
    return [];
  }
}

/** Directories besides the one given in which files lie that its links lead to. */
export function linkedDirectories(directory: string, view: View): readonly string[] {
  const lying = entriesOf(directory)
    .filter((entry) => entry.isSymbolicLink() && isConfigName(nameOfOriginal(entry.name) ?? entry.name))
    .flatMap(({ name }) => directoryOf(join(directory, name), view));
  return [...new Set(lying)].filter((each) => each !== directory && fs.existsSync(each));
}
