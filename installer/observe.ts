import * as fs from "node:fs";
import { basename, join } from "node:path";
import { isConfigName, MAX_CONFIG_BYTES } from "../cni/conflist/read";
import { isTemporary } from "./disk";
import { decodeJournal, nameOfOriginal } from "./journal";
import type { FoundFile, NodeState } from "./node-state";
import type { Places } from "./places";
import type { PluginFile } from "./plugin-file";

function problemOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === "ENOENT") return "is a link to a file that cannot be reached from here";
  return `cannot be read: ${error instanceof Error ? error.message : String(error)}`;
}

/** Looks at one file; undefined where there is none. */
function find(path: string): FoundFile | undefined {
  const link = fs.lstatSync(path, { throwIfNoEntry: false });
  if (link === undefined) return undefined;
  const name = basename(path);
  const target = link.isSymbolicLink() ? { target: fs.readlinkSync(path) } : {};
  try {
    const stat = fs.statSync(path);
    const found = { name, mode: stat.mode & 0o777, ...target };
    if (stat.isDirectory()) return { ...found, problem: "is a directory" };
    if (!stat.isFile()) return { ...found, problem: "is no regular file" };
    if (stat.size > MAX_CONFIG_BYTES) return { ...found, problem: `is larger than ${MAX_CONFIG_BYTES} bytes` };
    return { ...found, bytes: fs.readFileSync(path) };
  } catch (error) {
    return { name, mode: 0o644, ...target, problem: problemOf(error) };
  }
}

/** Looks at the node's directories. @throws where one of them is missing or cannot be read */
export function observe(places: Places, plugin: PluginFile): NodeState {
  const names = fs.readdirSync(places.netDir).sort();
  const inNetDir = (name: string) => find(join(places.netDir, name));
  const originals = names.flatMap((name) => {
    const of = nameOfOriginal(name);
    const file = of === undefined ? undefined : inNetDir(name);
    return of === undefined || file === undefined ? [] : [[of, file] as const];
  });
  const leftovers = new Set(
    [places.netDir, places.binDir].flatMap((directory) =>
      fs
        .readdirSync(directory)
        .filter(isTemporary)
        .map((name) => join(directory, name)),
    ),
  );
  const journal = find(places.journal)?.bytes;
  const decoded = journal === undefined ? undefined : decodeJournal(journal);
  const kubeconfig = find(places.kubeconfig);
  return {
    configs: names.filter(isConfigName).flatMap((name) => inNetDir(name) ?? []),
    originals: new Map(originals),
    ...(decoded === undefined ? {} : { journal: decoded }),
    ...(kubeconfig === undefined ? {} : { kubeconfig }),
    plugin: plugin.compare(places.pluginSource, places.plugin),
    leftovers: [...leftovers],
  };
}
