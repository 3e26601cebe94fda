import { existsSync, readFileSync, statSync } from "node:fs";
import { utf8 } from "../../system/bytes";
import { dirname } from "../../system/path";
import type { Paths } from "./paths";

/** A directory of the node. */
interface Directory {
  /** The path on the node. */
  readonly path: string;
  /** The identity of the directory: links may give it several paths. */
  readonly id: string;
}

/** The directories of an installation. */
type Directories = Readonly<Record<"destCNINetDir" | "destCNIBinDir", Directory>>;

function idOf(directory: string): string {
  const { dev, ino } = statSync(directory);
  return `${dev}:${ino}`;
}

function ours({ netDir, binDir, onNode }: Paths): Directories {
  return {
    destCNINetDir: { path: onNode.netDir, id: idOf(netDir) },
    destCNIBinDir: { path: onNode.binDir, id: idOf(binDir) },
  };
}

/** The note of the installation on this node; undefined without an installation, or without a place for the note. */
function noted({ directories: path }: Paths): Partial<Directories> | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return undefined;
  }
}

/**
 * Why this installer does not use its directories: the node has an installation in other directories. An upgrade that
 * changes directories would leave a chain, a plugin and a token in the former ones, which are never renewed.
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

/** The note about our directories; undefined if it is already written, or if there is no place for it. */
export function directoriesToNote(paths: Paths): Uint8Array | undefined {
  if (!existsSync(dirname(paths.directories))) return undefined;
  const text = `${JSON.stringify(ours(paths))}\n`;
  const found = existsSync(paths.directories) ? readFileSync(paths.directories, "utf8") : "";
  return found === text ? undefined : utf8(text);
}
