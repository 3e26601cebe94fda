import { readFileSync } from "../../system/fs";

/** One line of /proc/self/mountinfo. */
export interface Mount {
  /** Its path here. */
  readonly point: string;
  /** What is seen there, as a path in its own file system; it follows a directory that is moved or removed. */
  readonly root: string;
  /** The mount's own, and `ro` if its file system is. */
  readonly options: readonly string[];
}

/** Blanks and the like are written as octal escapes. */
const unescaped = (field: string): string =>
  field.replace(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)));

function read(line: string): Mount {
  const [mount = "", fileSystem = ""] = line.split(" - ");
  const [, , , root = "", point = "", options = ""] = mount.split(" ");
  const readOnly = fileSystem.split(" ")[2]?.split(",").includes("ro") === true ? ["ro"] : [];
  return { point: unescaped(point), root: unescaped(root), options: [...options.split(","), ...readOnly] };
}

/** The mount that a path lies on: of those whose mount point leads to it, the longest and last. */
export function mountOf(mountinfo: string, path: string): Mount | undefined {
  const leads = ({ point }: Mount) => point === "/" || path === point || path.startsWith(`${point}/`);
  const leading = mountinfo
    .split("\n")
    .map(read)
    .filter((mount) => mount.point !== "" && leads(mount));
  const longest = Math.max(...leading.map(({ point }) => point.length));
  return leading.findLast(({ point }) => point.length === longest);
}

export function readMountinfo(): string {
  try {
    return readFileSync("/proc/self/mountinfo", "utf8");
  } catch {
    return "";
  }
}

/**
 * Tells when the node has got another directory in place of one that is mounted here. The mount goes on showing the old
 * one, and only a new container gets a new mount.
 */
export class Mounts {
  private readonly roots: ReadonlyMap<string, string | undefined>;

  constructor(
    directories: readonly string[],
    private readonly mountinfo: () => string = readMountinfo,
  ) {
    const text = mountinfo();
    this.roots = new Map(directories.map((directory) => [directory, mountOf(text, directory)?.root]));
  }

  /** @throws if a directory has been moved or removed on the node */
  check(): void {
    const text = this.mountinfo();
    for (const [directory, root] of this.roots) {
      const now = mountOf(text, directory)?.root;
      if (root === undefined || now === undefined || now === root) continue;
      throw new Error(
        `${directory} was moved or removed on the node (${root} is now ${now}), and is still what this container sees: ` +
          "ending, so that the kubelet starts one that sees the new one",
      );
    }
  }
}
