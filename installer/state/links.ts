import { lstatSync, readlinkSync } from "node:fs";
import { dirname, join, resolve } from "../../system/path";

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
