import { type Dirent, existsSync, lstatSync, readdirSync, readlinkSync } from "node:fs";
import { isConfigName } from "../../cni/conflist/read";
import { dirname, join, resolve } from "../../system/path";
import { nameOfOriginal } from "./journal";

/** The mounts of the node's files. */
export interface View {
  /** Mount path of the node's root, in parts; empty if it is the root. */
  readonly mountPrefix: string;
  /** The mounted directories, as paths here: a file not found in them does not exist. */
  readonly mounted: readonly string[];
}

/** The target of a path. */
interface Located {
  /** As a path here; not a link, except in a loop of links. */
  readonly path: string;
  /** It leads out of the mounts: whether the file exists on the node is unknown. */
  readonly hidden: boolean;
}

/** The kernel's limit of links. */
const MOST_LINKS = 40;

/** Follows links as the node does: an absolute link begins at the node's root, not at the container's. */
export function locate(path: string, { mountPrefix, mounted }: View): Located {
  let onNode = mountPrefix === "" ? path : path.slice(join(mountPrefix).length);
  for (let links = 0; ; links += 1) {
    const here = join(mountPrefix === "" ? "/" : mountPrefix, onNode);
    const found = lstatSync(here, { throwIfNoEntry: false });
    if (found?.isSymbolicLink() && links < MOST_LINKS) {
      onNode = resolve(dirname(onNode), readlinkSync(here));
      continue;
    }
    const outside = mountPrefix !== "" && !mounted.some((directory) => here.startsWith(`${directory}/`));
    return { path: here, hidden: found === undefined && outside };
  }
}

/** The directory of a file; empty if its links lead nowhere, which reading the file reports. */
function directoryOf(path: string, view: View): readonly string[] {
  try {
    return [dirname(locate(path, view).path)];
  } catch {
    return [];
  }
}

/** The entries of a directory; empty if it cannot be read, which reading its files reports. */
export function entriesOf(directory: string): readonly Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true });
  } catch {
    return [];
  }
}

/** Other directories that the links of a directory lead to. */
export function linkedDirectories(directory: string, view: View): readonly string[] {
  const lying = entriesOf(directory)
    .filter((entry) => entry.isSymbolicLink() && isConfigName(nameOfOriginal(entry.name) ?? entry.name))
    .flatMap(({ name }) => directoryOf(join(directory, name), view));
  return [...new Set(lying)].filter((each) => each !== directory && existsSync(each));
}
