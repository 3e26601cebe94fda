import { utf8 } from "../../system/bytes";
import * as fs from "../../system/fs";
import { dirname } from "../../system/path";
import type { Paths } from "./paths";

/** A directory of the node. */
interface Directory {
  /** As a path on the node. */
  readonly path: string;
  /** The directory itself: links may give it several paths. */
  readonly id: string;
}

/** The directories that an installation uses. */
export type Directories = Readonly<Record<"destCNINetDir" | "destCNIBinDir", Directory>>;

function idOf(directory: string): string {
  const { dev, ino } = fs.statSync(directory);
  return `${dev}:${ino}`;
}

function ours({ netDir, binDir, onNode }: Paths): Directories {
  return {
    destCNINetDir: { path: onNode.netDir, id: idOf(netDir) },
    destCNIBinDir: { path: onNode.binDir, id: idOf(binDir) },
  };
}

/** What the installation on this node noted; undefined if there is none, or no place for a note. */
function noted({ directories: path }: Paths): Partial<Directories> | undefined {
  try {
    return JSON.parse(fs.readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
}

/**
 * Why this installer does not work in its directories: an installation in others is there. A change of directories by an
 * upgrade would leave the former ones with a chain, a plugin and a token that are never renewed.
 */
export function movedFrom(paths: Paths): string | undefined {
  const [now, before] = [ours(paths), noted(paths)];
  const moved = (["destCNINetDir", "destCNIBinDir"] as const).flatMap((value) => {
    const former = before?.[value];
    if (former?.path === undefined || former.path === now[value].path || former.id === now[value].id) return [];
    return [`${value} was changed from ${former.path} to ${now[value].path}`];
  });
  if (moved.length === 0) return undefined;
  return `${moved.join(" and ")}: an upgrade cannot do that; set the former value again, uninstall, and install with the new value`;
}

/** The note about our directories; undefined if it is written already, or if there is no place for it. */
export function directoriesToNote(paths: Paths): Uint8Array | undefined {
  if (!fs.existsSync(dirname(paths.directories))) return undefined;
  const text = `${JSON.stringify(ours(paths))}\n`;
  const found = fs.existsSync(paths.directories) ? fs.readFileSync(paths.directories, "utf8") : "";
  return found === text ? undefined : utf8(text);
}
