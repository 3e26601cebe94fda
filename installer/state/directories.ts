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

/** The note of the installation on this node; empty without an installation, or without a place for the note. */
function noteAt(path: string): string {
  return existsSync(path) ? readFileSync(path, "utf8") : "";
}

function parse(note: string): Partial<Directories> {
  try {
    return JSON.parse(note) ?? {};
  } catch {
    return {};
  }
}

/** The directories of this installer, compared with those of the installation on this node. */
export interface ComparedDirectories {
  /**
   * Why this installer does not use its directories: the node has an installation in other directories. An upgrade that
   * changes directories would leave a chain and a plugin in the former ones, which are never renewed.
   */
  readonly problem?: string | undefined;
  /** The pending note about the directories; undefined if it is already written, or if there is no place for it. */
  readonly note?: Uint8Array | undefined;
}

/** Compares the directories. @throws if one of them is missing */
export function compareDirectories(paths: Paths): ComparedDirectories {
  const [now, found] = [ours(paths), noteAt(paths.directories)];
  const before = parse(found);
  const moved = (["destCNINetDir", "destCNIBinDir"] as const).flatMap((value) => {
    const former = before[value];
    if (former?.path === undefined || former.path === now[value].path || former.id === now[value].id) return [];
    return [`${value} was changed from ${former.path} to ${now[value].path}`];
  });
  if (moved.length > 0) {
    return {
      problem: `${moved.join(" and ")}: an upgrade cannot do that; set the former value again, uninstall, and install with the new value`,
    };
  }
  const text = `${JSON.stringify(now)}\n`;
  return found === text || !existsSync(dirname(paths.directories)) ? {} : { note: utf8(text) };
}
