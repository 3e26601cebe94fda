import { type Dirent, existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { DROPIN_FILE, dropinFolder, isDropinName } from "../../cni/conflist/dropin";
import { isConfigName, MAX_CONFIG_BYTES, readConfig } from "../../cni/conflist/read";
import { codeOf, reasonOf } from "../../cni/errors";
import { equal } from "../../system/bytes";
import { basename, dirname, join } from "../../system/path";
import { compareDirectories } from "./directories";
import { decodeJournal, nameOfOriginal } from "./journal";
import { locate, type View } from "./links";
import { type FoundFile, type NodeState, type Remain, SET_ASIDE, type Seen } from "./node-state";
import { isTemporary, type Paths } from "./paths";
import type { PluginFile } from "./plugin-file";

const MOUNT_IT = "put the file itself there, or mount its directory below the same prefix";
const READ_IT = "give the installer's container the capability DAC_OVERRIDE, or privileged";

/** Why a file cannot be read. The runtime can still read a file that is only denied to us. */
function unreadable(error: unknown): Pick<FoundFile, "problem" | "hidden"> {
  const code = codeOf(error);
  if (code === "ENOENT") return { problem: "is a link to a file that is not there" };
  if (code === "EACCES" || code === "EPERM") return { problem: `cannot be read (${code})`, hidden: READ_IT };
  return { problem: `cannot be read: ${reasonOf(error)}` };
}

/** Observes one file; undefined if it does not exist. */
function find(path: string, view: View): FoundFile | undefined {
  const link = lstatSync(path, { throwIfNoEntry: false });
  if (link === undefined) return undefined;
  const name = basename(path);
  const isLink = link.isSymbolicLink();
  const target = isLink ? readlinkSync(path) : undefined;
  const located = isLink ? locate(path, view) : { path, hidden: false };
  if (located.hidden) {
    return {
      name,
      mode: 0o644,
      target,
      problem: `is a link to ${target}, which is not mounted here`,
      hidden: MOUNT_IT,
    };
  }
  try {
    const stat = isLink ? statSync(located.path) : link;
    const found = { name, mode: stat.mode & 0o777, owner: { uid: stat.uid, gid: stat.gid }, target };
    // Runtimes ignore directories, and fail at a link to one.
    if (link.isDirectory()) return { ...found, problem: "is a directory", ignored: true };
    if (stat.isDirectory()) return { ...found, problem: "is a link to a directory" };
    if (!stat.isFile()) return { ...found, problem: "is not a regular file" };
    if (stat.size > MAX_CONFIG_BYTES) return { ...found, problem: `is larger than ${MAX_CONFIG_BYTES} bytes` };
    return { ...found, bytes: readFileSync(located.path) };
  } catch (error) {
    return { name, mode: 0o644, target, ...unreadable(error) };
  }
}

/** Whether a file is unchanged. */
export function isAsSeen({ path, bytes }: Seen, view: View): boolean {
  const now = find(path, view)?.bytes;
  return now === undefined || bytes === undefined ? now === bytes : equal(now, bytes);
}

/** The files in auxiliary chains that the journal notes, except the one that this installer writes. */
function findFormerAuxiliary(
  paths: Paths,
  auxiliary: readonly string[] = [],
): Pick<NodeState, "formerAuxiliary" | "hiddenAuxiliary"> {
  const noted = auxiliary
    .map((onNode) => ({ onNode, path: join(paths.mountPrefix === "" ? "/" : paths.mountPrefix, onNode) }))
    .filter(({ path }) => path !== paths.auxiliary);
  const isMounted = ({ path }: { readonly path: string }) =>
    paths.mountPrefix === "" || paths.mounted.some((directory) => path.startsWith(`${directory}/`));
  const found = noted.filter(isMounted).flatMap(({ path }) => {
    const file = find(path, paths);
    return file === undefined || file.ignored ? [] : [[path, file] as const];
  });
  const hidden = noted.filter((each) => !isMounted(each)).map(({ onNode }) => onNode);
  return { formerAuxiliary: new Map(found), hiddenAuxiliary: hidden };
}

/** One of our directories and all its entries, innermost first. */
function findAll(directory: string): readonly Remain[] {
  const stat = lstatSync(directory, { throwIfNoEntry: false });
  if (!stat?.isDirectory()) return [];
  const inside = readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    return entry.isDirectory() ? findAll(path) : [{ path, isDirectory: false }];
  });
  return [...inside, { path: directory, isDirectory: true }];
}

function isSetAside(name: string): boolean {
  return name.endsWith(SET_ASIDE) && isConfigName(name.slice(0, -SET_ASIDE.length));
}

const dropinNames = (folder: string): readonly string[] => readdirSync(folder).filter(isDropinName).sort();

function findAuxiliary({ auxiliary }: Paths, view: View): NodeState["auxiliary"] {
  const folder = auxiliary === undefined ? undefined : dirname(auxiliary);
  if (folder === undefined || !existsSync(folder)) return [];
  return dropinNames(folder).flatMap((name) => find(join(folder, name), view) ?? []);
}

/** Folders and their drop-ins; links are excluded, since from here they may lead elsewhere than on the node. */
function findDropins(folders: readonly string[], configs: readonly FoundFile[], paths: Paths): NodeState["dropins"] {
  const lists = new Set(
    configs.map(({ name, bytes }) => (bytes === undefined ? undefined : dropinFolder(readConfig(name, bytes)))),
  );
  return new Map(
    folders.map((folder) => {
      const directory = join(paths.netDir, folder);
      const names = lists.has(folder) ? dropinNames(directory) : [DROPIN_FILE];
      return [folder, names.flatMap((name) => find(join(directory, name), paths) ?? [])];
    }),
  );
}

/** The entries of a directory; empty if it cannot be read, which observing the node reports. */
function entriesOf(directory: string): readonly Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true });
  } catch {
    return [];
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

/**
 * The directories whose changes count: the node's, those that links of configurations lead to, and folders with our
 * drop-in, or for it, because other drop-ins there count, too.
 */
export function watchedDirectories(paths: Paths): readonly string[] {
  const { netDir, binDir, auxiliary } = paths;
  const entries = entriesOf(netDir);
  const linked = entries
    .filter((entry) => entry.isSymbolicLink() && isConfigName(nameOfOriginal(entry.name) ?? entry.name))
    .flatMap(({ name }) => directoryOf(join(netDir, name), paths));
  const dropins = entries
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => join(netDir, name, DROPIN_FILE))
    .filter((path) => existsSync(path));
  const folders = [...dropins, ...(auxiliary === undefined ? [] : [auxiliary])].map(dirname);
  return [...new Set([netDir, binDir, ...[...linked, ...folders].filter((path) => existsSync(path))])];
}

/** Temporary files left by a crash in a directory. */
const temporaryIn = (directory: string, names = readdirSync(directory)): readonly string[] =>
  names.filter(isTemporary).map((name) => join(directory, name));

/** Observes the node's directories. @throws if one of them is missing or cannot be read */
export function observe(paths: Paths, plugin: PluginFile): NodeState {
  const entries = readdirSync(paths.netDir, { withFileTypes: true });
  const names = entries.map(({ name }) => name).sort();
  const executables = readdirSync(paths.binDir);
  const inNetDir = (name: string) => find(join(paths.netDir, name), paths);
  const originals = names.flatMap((name) => {
    const of = nameOfOriginal(name);
    const file = of === undefined ? undefined : inNetDir(name);
    return of === undefined || file === undefined ? [] : [[of, file] as const];
  });
  const configs = names.filter(isConfigName).flatMap((name) => inNetDir(name) ?? []);
  const folders = entries
    .filter((entry) => entry.isDirectory() && join(paths.netDir, entry.name, DROPIN_FILE) !== paths.auxiliary)
    .map(({ name }) => name);
  const journal = find(paths.journal, paths)?.bytes;
  const decoded = journal === undefined ? undefined : decodeJournal(journal);
  return {
    configs,
    setAside: names.filter(isSetAside).flatMap((name) => inNetDir(name) ?? []),
    originals: new Map(originals),
    dropins: findDropins(folders, configs, paths),
    auxiliary: findAuxiliary(paths, paths),
    ...findFormerAuxiliary(paths, decoded?.auxiliary),
    names,
    notFolders: entries.filter((entry) => !entry.isDirectory() && !entry.isSymbolicLink()).map(({ name }) => name),
    journal: decoded,
    journalBytes: journal,
    kubeconfig: find(paths.kubeconfig, paths),
    outdated: paths.plugins.filter((path) => !plugin.isCopy(paths.image, path)),
    attached: findAll(paths.attached),
    executables,
    leftovers: [
      ...temporaryIn(paths.netDir, names),
      ...temporaryIn(paths.binDir, executables),
      ...folders.flatMap((folder) => temporaryIn(join(paths.netDir, folder))),
    ],
    directories: compareDirectories(paths),
  };
}
