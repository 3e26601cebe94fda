import { readFileSync } from "node:fs";

/** One line of /proc/self/mountinfo. */
interface Mount {
  /** The mount point. */
  readonly point: string;
  /** The mounted directory as a path in its file system; it changes when the directory is moved or removed. */
  readonly root: string;
  /** The mount's options, with `ro` if the file system is read-only. */
  readonly options: readonly string[];
}

/** Blanks and similar characters are octal escapes. */
const unescaped = (field: string): string =>
  field.replace(/\\([0-7]{3})/g, (_, code: string) => String.fromCharCode(Number.parseInt(code, 8)));

function read(line: string): Mount {
  const [mount = "", fileSystem = ""] = line.split(" - ");
  const [, , , root = "", point = "", options = ""] = mount.split(" ");
  const readOnly = fileSystem.split(" ")[2]?.split(",").includes("ro") === true ? ["ro"] : [];
  return { point: unescaped(point), root: unescaped(root), options: [...options.split(","), ...readOnly] };
}

/** The mount of a path: the last one with the longest matching mount point. */
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
 * Detects that the node has replaced a mounted directory. The mount continues to show the old one; only a new container
 * gets a new mount.
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
          "exiting, so that the kubelet starts a container that sees the new one",
      );
    }
  }
}
