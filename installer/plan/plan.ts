import { DROPIN_FILE, dropinFolder, libcniOf } from "../../cni/conflist/dropin";
import { chained, hasStanza, isChained, listOf, type StanzaJson, unchained } from "../../cni/conflist/edit";
import { type Config, compareNames, type Libcni, readConfig } from "../../cni/conflist/read";
import type { Chaining } from "../../cni/contract";
import { sameJson } from "../../cni/json";
import { passesOverBroken, readsDropins } from "../../cni/runtime";
import { DROPIN_TYPE } from "../../cni/stanza";
import { equal, textOf, utf8 } from "../../system/bytes";
import { dirname, join } from "../../system/path";
import { encodeJournal, type Journal, originalName, takenBy } from "../state/journal";
import { type FoundFile, type NodeState, type Remain, SET_ASIDE, type Seen } from "../state/node-state";
import { type Paths, TEMPORARY } from "../state/paths";
import {
  type Choice,
  choose,
  dropinsOf,
  isOursDropin,
  judgeNeighbours,
  type Neighbours,
  whyNoAuxiliary,
} from "./chaining";
import type { Change } from "./change";

/** The wanted state of a node. */
export interface Wanted {
  readonly owner: string;
  /** Whether the container runtime, or Multus, calls the plugin for every pod. */
  readonly chained: boolean;
  readonly chaining: Chaining;
  /** The node's container runtime, `containerd://2.2.9`; undefined if unknown. */
  readonly runtime?: string | undefined;
  /** The runtime has not read the folder of drop-ins when asked to. */
  readonly unread?: boolean;
  /** The runtime searches several directories for plugins, so ours need not hold the others of the chain. */
  readonly multipleBinDirs?: boolean;
  /** Another program has put a plugin that works in place of ours, and it stays. */
  readonly keepsPlugin?: boolean;
  readonly stanza: StanzaJson;
}

/** A file that runtimes read but that is not a valid configuration. */
interface Finding {
  readonly file: string;
  readonly reason: string;
  /** What would make it visible: on the node it may be valid. */
  readonly hidden?: string | undefined;
}

/** The order of the steps keeps a node working: a chain never names a file that is not installed yet. */
export const STEPS = ["journal", "plugin", "chain", "rest"] as const;
export type Step = (typeof STEPS)[number];

export interface Plan {
  readonly steps: Readonly<Record<Step, readonly Change[]>>;
  /** Path of the file that holds the stanza after the changes; absent if there is no configuration to chain to. */
  readonly chain?: string | undefined;
  /** How pods are chained, and why; absent if there is no configuration to chain to. */
  readonly choice?: Choice | undefined;
  /** The place of our drop-in, if chaining uses one: the folder's path, and whether the drop-in is already there. */
  readonly dropin?: { readonly folder: string; readonly stands: boolean } | undefined;
  /** The other plugins of the chain. */
  readonly neighbours: Neighbours;
  /** The chained configuration, by its owner's file name. */
  readonly active?: string | undefined;
  /** The name of the file with the configuration in force, before the changes. */
  readonly inForce?: string | undefined;
  /** Files before the first that the runtime can load. */
  readonly findings: readonly Finding[];
  /** That first file, if it calls only the loopback plugin. */
  readonly loopback?: string | undefined;
}

/**
 * A configuration as its owner wrote it, without our stanza. The functions that find it, down to {@link pristine}, serve
 * edited lists. With a drop-in it is the file itself, unless an earlier edit is still to be undone.
 */
interface Pristine {
  readonly name: string;
  readonly config: Config;
  readonly bytes: Uint8Array;
  /** The file that holds it now; absent if that is a list that we made. */
  readonly file?: FoundFile;
  /** The list that we made from it. */
  readonly made?: FoundFile;
}

const EMPTY = new Uint8Array();

function parseLoosely(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(textOf(bytes));
  } catch {
    return undefined;
  }
}

/**
 * The original's bytes, unless the content has changed since. The owner of a link goes on writing its target, which counts
 * more than what others add to the list.
 */
function withoutUs(stripped: Uint8Array, original: FoundFile | undefined): Uint8Array {
  if (original?.bytes === undefined) return stripped;
  if (original.target !== undefined) return original.bytes;
  return sameJson(parseLoosely(original.bytes), parseLoosely(stripped)) ? original.bytes : stripped;
}

/** A configuration in its owner's file, with or without our stanza. */
function ordinary(file: FoundFile, original: FoundFile | undefined): Pristine {
  const { name, bytes, problem } = file;
  if (bytes === undefined) {
    return { name, file, bytes: EMPTY, config: { kind: "invalid", reason: problem ?? "cannot be read" } };
  }
  const config = readConfig(name, bytes);
  if (config.kind !== "list" || !hasStanza(config)) return { name, file, bytes, config };
  const own = withoutUs(unchained(config), original);
  return { name, file, bytes: own, config: readConfig(name, own) };
}

/** The parts of a list besides our stanza; empty if it is not a list. */
function othersIn(list: FoundFile): readonly unknown[] {
  const config = list.bytes === undefined ? undefined : readConfig(list.name, list.bytes);
  if (config?.kind !== "list") return [];
  return (JSON.parse(textOf(unchained(config))) as { readonly plugins?: readonly unknown[] }).plugins ?? [];
}

/** Whether a list consists of a single plugin's configuration and our stanza, without additions of others. */
function standsFor(list: FoundFile, original: Uint8Array): boolean {
  const others = othersIn(list);
  return others.length === 1 && sameJson(others[0], parseLoosely(original));
}

/** Names of single plugins' files that are set aside while their original name is free. */
export function setAside({ configs, originals }: NodeState): readonly string[] {
  const present = new Set(configs.map(({ name }) => name));
  return [...originals.keys()].filter((name) => !name.endsWith(".conflist") && !present.has(name));
}

/** The suffix of lists that we make. No other program uses it. */
const MADE = ".linkerd-cni.conflist";

/**
 * The list that we make from a single plugin's file. It begins with the file's name: Multus' entrypoint skips files that
 * begin with 00-multus.conf, and takes the first of the others for the primary's.
 */
const madeName = (from: string): string => `${from}${MADE}`;

/** The single plugin's file that a list with such a name is made from. */
const singleOf = (list: string): string | undefined => (list.endsWith(MADE) ? list.slice(0, -MADE.length) : undefined);

/** The file that a list of ours is made from; undefined for other lists, and if the file is lost. */
function madeFrom({ name }: FoundFile, { configs, originals }: NodeState): string | undefined {
  const from = singleOf(name);
  const isThere = from !== undefined && (originals.has(from) || configs.some((file) => file.name === from));
  return isThere ? from : undefined;
}

/** A list that we made. A list with additions of others counts as their list. */
function ofMade(made: FoundFile, from: string, state: NodeState): Pristine | undefined {
  if (state.configs.some(({ name }) => name === from)) return undefined;
  const { bytes = EMPTY } = state.originals.get(from) ?? {};
  const changed =
    made.bytes !== undefined && readConfig(made.name, made.bytes).kind === "list" && !standsFor(made, bytes);
  if (changed) return ordinary(made, state.originals.get(made.name));
  return { name: from, made, bytes, config: readConfig(from, bytes) };
}

/** Files set aside for a list that another program has removed. */
function orphans(state: NodeState): readonly Pristine[] {
  const present = new Set(state.configs.map(({ name }) => name));
  return setAside(state).flatMap((name) => {
    const bytes = state.originals.get(name)?.bytes;
    return present.has(madeName(name)) || bytes === undefined ? [] : [{ name, bytes, config: readConfig(name, bytes) }];
  });
}

/** Why the runtime does not load a configuration that is valid in itself. */
function whyNotLoaded(config: Config, { notFolders, dropins }: NodeState, libcni: Libcni): string | undefined {
  if (config.kind === "invalid") return undefined;
  const refused = config.refused?.[libcni];
  if (refused !== undefined || libcni === "1.1" || config.kind === "single" || config.inlinedOnly) return refused;
  const { name, types } = config;
  if (notFolders.includes(name))
    return `has the name ${name}, and ${name} beside it is not a directory: remove one of them`;
  const isEmpty = types.length === 0 && !dropins.get(name)?.some((file) => file.name !== DROPIN_FILE && !file.ignored);
  return isEmpty ? `has no "plugins", and ${name} beside it none either` : undefined;
}

/** The configuration directory as it would be without us, in the order in which runtimes read it. */
export function pristine(state: NodeState, libcni: Libcni = "1.3"): readonly Pristine[] {
  const found = state.configs.map((file) => {
    const from = madeFrom(file, state);
    return from === undefined ? ordinary(file, state.originals.get(file.name)) : ofMade(file, from, state);
  });
  return [...found.filter((each) => each !== undefined), ...orphans(state)]
    .map((each) => {
      const reason = whyNotLoaded(each.config, state, libcni);
      return reason === undefined ? each : { ...each, config: { kind: "invalid", reason } as const };
    })
    .sort((left, right) => compareNames(left.name, right.name));
}

const isValid = ({ config }: Pristine): boolean => config.kind !== "invalid";

/** The file that the runtime uses, if that gives pods no other network than the loopback. */
function loopbackOf(configs: readonly Pristine[]): string | undefined {
  const first = configs.find(isValid);
  const types = first === undefined || first.config.kind === "invalid" ? [] : first.config.types;
  return types.length > 0 && types.every((type) => type === "loopback") ? first?.name : undefined;
}

/** The configuration that containerd and CRI-O use: the first valid file; undefined if it has only the loopback. */
export function activeOf(configs: readonly Pristine[]): Pristine | undefined {
  return loopbackOf(configs) === undefined ? configs.find(isValid) : undefined;
}

interface Context {
  readonly paths: Paths;
  readonly state: NodeState;
}

/** The changes that make the runtime use our stanza. */
interface Chain {
  /** In the order in which they must happen. */
  readonly changes: readonly Change[];
  /** The file that holds the stanza, in the configuration directory; absent if Multus calls it. */
  readonly file?: string;
  /** The folder of our drop-in. */
  readonly folder?: string;
  /** The file whose original must be kept. */
  readonly keeps?: string;
}

const same = (left: Uint8Array | undefined, right: Uint8Array): boolean => left !== undefined && equal(left, right);

const sameContent = (left: Uint8Array, right: Uint8Array): boolean => sameJson(parseLoosely(left), parseLoosely(right));

/** The content of a file that runtimes read. */
function seen({ paths, state }: Context, name: string): Seen {
  const files = [...state.configs, ...state.setAside];
  return { path: join(paths.netDir, name), bytes: files.find((file) => file.name === name)?.bytes };
}

function put(context: Context, name: string, bytes: Uint8Array, file: FoundFile | undefined): Change {
  const { mode = 0o644, owner } = file ?? {};
  return { do: "write", path: join(context.paths.netDir, name), bytes, mode, owner, seen: seen(context, name) };
}

function keep(context: Context, file: FoundFile, bytes: Uint8Array): readonly Change[] {
  const { paths, state } = context;
  const path = join(paths.netDir, originalName(file.name));
  const kept = state.originals.get(file.name);
  // The owner's content, without additions of others to the list made from it.
  if (kept?.target !== undefined && !same(file.bytes, bytes)) return [];
  if (same(kept?.bytes, bytes) && (file.target === undefined || kept?.target === file.target)) return [];
  return same(file.bytes, bytes) && file.target !== undefined
    ? [{ do: "link", path, target: file.target }]
    : [keptFile(context, file, { path, bytes })];
}

/** The owner's file, or, if it is ours by now, its content without our changes. */
function keptFile(context: Context, file: FoundFile, { path, bytes }: { path: string; bytes: Uint8Array }): Change {
  const { name, mode, owner } = file;
  return same(file.bytes, bytes)
    ? { do: "keep", from: join(context.paths.netDir, name), path, bytes, mode, owner, seen: seen(context, name) }
    : { do: "write", path, bytes, mode, owner };
}

function chainList(context: Context, active: Pristine, file: FoundFile, stanza: StanzaJson): Chain {
  const chaining = { file: file.name, keeps: file.name };
  const now = file.bytes === undefined ? undefined : readConfig(file.name, file.bytes);
  if (active.config.kind !== "list") return { ...chaining, changes: [] };
  const asWanted = now?.kind === "list" && isChained(now, stanza) && sameContent(unchained(now), active.config.bytes);
  if (asWanted) return { ...chaining, changes: [] };
  const bytes = chained(active.config, stanza);
  return { ...chaining, changes: [...keep(context, file, active.bytes), put(context, file.name, bytes, file)] };
}

function chainSingle(context: Context, active: Pristine, stanza: StanzaJson): Chain {
  if (active.config.kind !== "single") return { changes: [] };
  const { netDir } = context.paths;
  const path = join(netDir, originalName(active.name));
  const name = madeName(active.name);
  const bytes = listOf(active.config, active.name, stanza);
  const there = context.state.configs.find((file) => file.name === name);
  const write = same(there?.bytes, bytes) ? [] : [put(context, name, bytes, active.file ?? there)];
  const aside: readonly Change[] =
    active.file === undefined
      ? []
      : [{ do: "aside", from: join(netDir, active.name), path, seen: seen(context, active.name) }];
  return { changes: [...write, ...aside], file: name, keeps: active.name };
}

/**
 * Plans the stanza in the active configuration, for which originals are kept, and removes our drop-in afterwards: for a
 * moment the plugin may be called twice for a pod, which sets the same rules, but never not at all.
 */
function chainEdited(context: Context, active: Pristine, stanza: StanzaJson): Chain {
  const chain =
    active.config.kind === "list" && active.file !== undefined
      ? chainList(context, active, active.file, stanza)
      : chainSingle(context, active, stanza);
  return { ...chain, changes: [...chain.changes, ...withoutDropins(context)] };
}

/** Plans a drop-in beside the active configuration, which is then restored as its owner wrote it. */
function chainDropin(context: Context, active: Pristine, stanza: StanzaJson): Chain {
  if (active.config.kind !== "list") return { changes: [] };
  const { name: folder } = active.config;
  const directory = join(context.paths.netDir, folder);
  const found = context.state.dropins.get(folder)?.find(({ name }) => name === DROPIN_FILE);
  const list = join(context.paths.onNode.netDir, active.name);
  return {
    changes: [
      ...stanzaFile(join(directory, DROPIN_FILE), found, { ...stanza, extends: list }),
      ...restore(context, active),
    ],
    file: join(folder, DROPIN_FILE),
    folder,
  };
}

/** Our stanza as a separate file. */
function stanzaFile(path: string, found: FoundFile | undefined, stanza: StanzaJson): readonly Change[] {
  const bytes = utf8(`${JSON.stringify({ ...stanza, type: DROPIN_TYPE }, null, 2)}\n`);
  if (same(found?.bytes, bytes) && found?.mode === PRIVATE) return [];
  return [
    { do: "mkdir", path: dirname(path) },
    { do: "write", path, bytes, mode: PRIVATE, seen: { path, bytes: found?.bytes } },
  ];
}

/** Folders with our drop-in. */
function foldersOfOurs({ state }: Context): readonly string[] {
  return [...state.dropins].flatMap(([folder, files]) =>
    files.some(({ name, ignored }) => name === DROPIN_FILE && ignored !== true) ? [folder] : [],
  );
}

/** Removes our drop-ins, except those in some folders, and the folders that are then empty. */
function withoutDropins(context: Context, but: readonly string[] = []): readonly Change[] {
  const { paths, state } = context;
  const folders = foldersOfOurs(context).filter((folder) => !but.includes(folder));
  if (folders.length === 0) return [];
  const removals = folders.flatMap((folder): readonly Change[] => {
    const directory = join(paths.netDir, folder);
    const path = join(directory, DROPIN_FILE);
    const bytes = state.dropins.get(folder)?.find(({ name }) => name === DROPIN_FILE)?.bytes;
    return [
      { do: "remove", path, seen: { path, bytes } },
      { do: "rmdir", path: directory },
    ];
  });
  return [...removals, { do: "reread", path: paths.reread }];
}

/** Removes the folders that a crash has left, except some; folders with files of others stay. */
function withoutFolders({ paths, state }: Context, but: readonly string[] = []): readonly Change[] {
  return (state.journal?.folders ?? [])
    .filter((folder) => !but.includes(folder) && state.dropins.has(folder))
    .map((folder) => ({ do: "rmdir", path: join(paths.netDir, folder) }));
}

/** The folders in which runtimes look for drop-ins of the lists. */
function foldersOfLists({ configs, dropins }: NodeState): readonly string[] {
  const folders = configs.map(({ name, bytes }) => bytes && dropinFolder(readConfig(name, bytes)));
  return folders.filter((folder) => folder !== undefined && dropins.has(folder)) as readonly string[];
}

/** Removes a file that runtimes read. */
function removed(context: Context, name: string): Change {
  return { do: "remove", path: join(context.paths.netDir, name), seen: seen(context, name) };
}

/** Restores a configuration as its owner wrote it. */
function restore(context: Context, found: Pristine): readonly Change[] {
  const { paths, state } = context;
  const { name, bytes, file, made } = found;
  const path = join(paths.netDir, name);
  const asSeen = seen(context, name);
  const back: Change = { do: "restore", from: join(paths.netDir, originalName(name)), path, bytes, seen: asSeen };
  const list = made === undefined ? [] : [removed(context, made.name)];
  if (file === undefined) return [back, ...list];
  if (file.bytes === undefined || same(file.bytes, bytes)) return [];
  const now = readConfig(name, file.bytes);
  if (now.kind !== "list" || !hasStanza(now)) return [];
  const kept = state.originals.get(name);
  // An owner's link is restored whatever others have added, because the owner goes on writing its target.
  return [
    same(kept?.bytes, bytes) || kept?.target !== undefined
      ? back
      : { do: "write", path, bytes, mode: file.mode, owner: file.owner, seen: asSeen },
  ];
}

/** Removes our stanza from configurations that another agent has set aside, and may restore after our removal. */
function restoreSetAside(context: Context, isOurs: (name: string) => boolean): readonly Change[] {
  return context.state.setAside.flatMap((file) => {
    const name = file.name.slice(0, -SET_ASIDE.length);
    if (!isOurs(name)) return [];
    const { bytes } = ordinary({ ...file, name }, context.state.originals.get(name));
    return file.bytes === undefined || same(file.bytes, bytes) ? [] : [put(context, file.name, bytes, file)];
  });
}

const PRIVATE = 0o600;
/** The plugin that Multus puts first in its auxiliary chain. */
const PASSTHRU = "passthru";

/** Lists that we made and that are no longer needed. */
function staleLists(context: Context, keeps: string | undefined): readonly Change[] {
  const { configs } = context.state;
  const present = new Set(configs.map(({ name }) => name));
  return configs
    .filter((file) => file.name !== keeps && present.has(madeFrom(file, context.state) ?? ""))
    .map(({ name }) => removed(context, name));
}

/** Kept originals that are no longer needed, and that no change restores. */
function staleOriginals(context: Context, keeps: readonly unknown[], done: readonly Change[]): readonly Change[] {
  const { state } = context;
  const moved = new Set(done.map((change) => (change.do === "restore" ? change.from : "")));
  // A list that we made and others have extended stays, and so does what it was made from.
  const adopted = pristine(state).map(({ file }) => file && madeFrom(file, state));
  return [...state.originals.keys()]
    .filter((name) => ![...keeps, ...adopted].includes(name))
    .map((name) => join(context.paths.netDir, originalName(name)))
    .filter((path) => !moved.has(path))
    .map((path) => ({ do: "remove", path }));
}

/** If two installers write at the same time, one of them looks again. */
function noted({ journal: path }: Paths, journal: Journal, last: Uint8Array | undefined): readonly Change[] {
  const bytes = encodeJournal(journal);
  return same(last, bytes) ? [] : [{ do: "write", path, bytes, mode: PRIVATE, seen: { path, bytes: last } }];
}

/** Leaves everything in place for other installers, unless one of them takes the node meanwhile. */
export function planLeaving({ journal, journalBytes }: NodeState, paths: Paths): readonly Change[] {
  return journal === undefined ? [] : noted(paths, { ...journal, left: true }, journalBytes);
}

function findings(configs: readonly Pristine[]): readonly Finding[] {
  const until = configs.findIndex(isValid);
  return configs
    .slice(0, until < 0 ? configs.length : until)
    .flatMap(({ name, config, file }) =>
      config.kind === "invalid" && file?.ignored !== true
        ? [{ file: name, reason: config.reason, hidden: file?.hidden }]
        : [],
    );
}

function directoriesNoted({ paths, state }: Context): readonly Change[] {
  const bytes = state.directories.note;
  return bytes === undefined ? [] : [{ do: "write", path: paths.directories, bytes, mode: PRIVATE }];
}

const remove = (path: string): Change => ({ do: "remove", path });

const without = (remains: readonly Remain[]): readonly Change[] =>
  remains.map(({ path, isDirectory }) => ({ do: isDirectory ? "rmdir" : "remove", path }));

function pluginInPlace({ paths: { image, plugins }, state }: Context, { keepsPlugin }: Wanted): readonly Change[] {
  // The end of the last attachment must not remove the new plugin.
  const stays = without(state.attached);
  const due = state.outdated.filter((path) => keepsPlugin !== true || path !== plugins[0]);
  return [...stays, ...due.map((path): Change => ({ do: "install", image, path }))];
}

/** linkerd's plugin reads the kubeconfig of its installer; ours does not. Its installer may just have written another. */
function withoutKubeconfig({ paths, state }: Context, { changes }: Chain): readonly Change[] {
  const { kubeconfig: path, plugins } = paths;
  const isOurs = !state.outdated.includes(plugins[0] ?? "") && changes.length === 0;
  const bytes = state.kubeconfig?.bytes;
  return bytes !== undefined && isOurs ? [{ do: "remove", path, seen: { path, bytes } }] : [];
}

/** Whether we have chained a configuration; stanzas in other files belong to others. */
function isOurs({ name, made }: Pristine, { originals }: NodeState): boolean {
  return made !== undefined || originals.has(name);
}

/** The same for a file that does not exist under its name. */
export function hasChained(name: string, { originals }: NodeState): boolean {
  return originals.has(name) || originals.has(singleOf(name) ?? "");
}

/** Folders whose drop-in stays. */
function keptFolders(context: Context, { file, folder }: Chain, isListed: boolean): readonly string[] {
  const { folders = [] } = context.state.journal ?? {};
  // An installer that does not chain leaves the stanzas of others alone.
  if (!isListed) return foldersOfOurs(context).filter((each) => !folders.includes(each));
  // Until there is a configuration to chain, the files of the last one stay: its owner may be about to write it again.
  if (file === undefined) return foldersOfOurs(context);
  return folder === undefined ? [] : [folder];
}

/** A name that our drop-in, or its folder, cannot have. */
function occupiedName(config: Config, { names, dropins }: NodeState): string | undefined {
  if (config.kind !== "list" || !names.includes(config.name)) return undefined;
  const files = dropins.get(config.name);
  if (files === undefined) return config.name;
  return files.some((file) => file.name === DROPIN_FILE && file.ignored) ? join(config.name, DROPIN_FILE) : undefined;
}

/** Multus' auxiliary chain, if it has one there. */
function auxiliaryChoice({ paths, state }: Context, active: Pristine | undefined): Choice {
  const { netDir, auxiliary = "", mountPrefix } = paths;
  const why = "chaining is auxiliary";
  if (state.auxiliary.some(({ name, ignored }) => name === DROPIN_FILE && ignored === true)) {
    return { way: "auxiliary", why, problem: `${auxiliary} is a directory: remove it` };
  }
  if (active === undefined) {
    return { way: "auxiliary", why, problem: `no valid CNI configuration in ${netDir} yet: install Multus` };
  }
  const folder = dirname(auxiliary).slice(mountPrefix.length);
  const whyNot = whyNoAuxiliary(active.config, join(netDir, active.name), folder);
  return { way: "auxiliary", why, problem: whyNot && `${why}, but ${whyNot}` };
}

/** Chooses between a drop-in and an edit; undefined if there is no configuration to chain to. */
function listChoice({ paths, state }: Context, wanted: Wanted, active: Pristine | undefined): Choice | undefined {
  const { chaining, runtime, unread = false } = wanted;
  if (active === undefined || chaining === "auxiliary") return undefined;
  const { config, name } = active;
  const occupied = occupiedName(config, state);
  const stands = dropinsOf(config, state).some((file) => file.name === DROPIN_FILE && isOursDropin(file));
  return choose({ chaining, runtime, unread, stands, path: join(paths.netDir, name), config, occupied });
}

/** Why pods would not start with the chain; undefined if the plugin directory holds what else it calls. */
function whyIncomplete({ paths, state }: Context, { types }: Neighbours): string | undefined {
  const lacking = types.filter((type) => !state.executables.includes(type));
  if (lacking.length === 0) return undefined;
  const ofMultus = lacking.includes(PASSTHRU) ? " update Multus' manifest, which installs passthru;" : "";
  return `${paths.binDir} lacks ${lacking.join(", ")}, which the chain calls, so pods would not start:${ofMultus} set destCNIBinDir to the directory in which the container runtime searches for plugins, or multipleCNIBinDirs to true if it searches several`;
}

/** What else is in the chain that ours joins. */
function neighboursOf({ paths, state }: Context, { runtime }: Wanted, active: Pristine | undefined): Neighbours {
  const { netDir, auxiliary } = paths;
  if (auxiliary !== undefined) {
    const found = judgeNeighbours(state.auxiliary, dirname(auxiliary), "auxiliary");
    return { ...found, types: [PASSTHRU, ...found.types] };
  }
  if (active === undefined || active.config.kind === "invalid") return { types: [], warnings: [] };
  const { types, name = "" } = active.config;
  const dropins = readsDropins(runtime) === false ? [] : dropinsOf(active.config, state);
  const found = judgeNeighbours(dropins, join(netDir, name), "list");
  return { ...found, types: [...types, ...found.types] };
}

/** How pods are chained; undefined if they are not. */
function chosen(
  context: Context,
  wanted: Wanted,
  active: Pristine | undefined,
  neighbours: Neighbours,
): Choice | undefined {
  if (!wanted.chained) return undefined;
  const isAuxiliary = context.paths.auxiliary !== undefined;
  const choice = isAuxiliary ? auxiliaryChoice(context, active) : listChoice(context, wanted, active);
  if (choice === undefined || choice.problem !== undefined) return choice;
  const problem = wanted.multipleBinDirs === true ? undefined : whyIncomplete(context, neighbours);
  return problem === undefined ? choice : { ...choice, problem };
}

/** Our files in auxiliary chains, including the one that this plan writes. */
function notedAuxiliary({ paths, state }: Context, choice: Choice | undefined): readonly string[] {
  const noted = state.journal?.auxiliary ?? [];
  if (paths.auxiliary === undefined || choice === undefined || choice.problem !== undefined) return noted;
  return [...new Set([...noted, paths.auxiliary.slice(paths.mountPrefix.length)])];
}

/** Removes the files of earlier installers from auxiliary chains, except the file of the current chain. */
function withoutFormerAuxiliary({ formerAuxiliary }: NodeState, but?: string): readonly Change[] {
  return [...formerAuxiliary]
    .filter(([path]) => path !== but)
    .map(([path, { bytes }]) => ({ do: "remove", path, seen: { path, bytes } }));
}

/** The chosen way is not possible: the node's files stay, with everything needed to restore them. */
function asItIs({ name }: Pristine): Chain {
  return { changes: [], keeps: name };
}

/** Plans the stanza for the chosen way. */
function chain(
  context: Context,
  { stanza }: Wanted,
  { choice, active }: { readonly choice: Choice | undefined; readonly active: Pristine | undefined },
): Chain {
  const { auxiliary: path } = context.paths;
  if (choice === undefined) return { changes: [] };
  if (choice.problem !== undefined) return active === undefined ? { changes: [] } : asItIs(active);
  if (path !== undefined) {
    const found = context.state.auxiliary.find(({ name }) => name === DROPIN_FILE);
    return { changes: stanzaFile(path, found, stanza) };
  }
  if (active === undefined) return { changes: [] };
  return choice.way === "dropin" ? chainDropin(context, active, stanza) : chainEdited(context, active, stanza);
}

/** The configurations as the runtime loads them. CRI-O skips a list with a drop-in that it cannot load. */
function loadedBy(context: Context, wanted: Wanted): readonly Pristine[] {
  const { runtime, chaining } = wanted;
  const configs = pristine(context.state, libcniOf(runtime));
  if (passesOverBroken(runtime) !== true || chaining === "auxiliary") return configs;
  return configs.map((found) => {
    const { problem } = neighboursOf(context, wanted, found);
    return problem === undefined
      ? found
      : { ...found, config: { kind: "invalid", reason: `is not loaded: ${problem}` } };
  });
}

/** The steps from this state to the wanted one; empty if the node already has it. */
export function planInstall(state: NodeState, paths: Paths, wanted: Wanted): Plan {
  const context = { paths, state };
  const configs = loadedBy(context, wanted);
  const loopback = loopbackOf(configs);
  /** Whether the runtime's configuration is chained. */
  const isListed = wanted.chained && wanted.chaining !== "auxiliary";
  const active = isListed ? activeOf(configs) : undefined;
  const neighbours = neighboursOf(context, wanted, active);
  const choice = chosen(context, wanted, activeOf(configs), neighbours);
  const chaining = chain(context, wanted, { choice, active });
  const auxiliaryPath = choice?.problem === undefined ? paths.auxiliary : undefined;
  const path = chaining.file === undefined ? auxiliaryPath : join(paths.netDir, chaining.file);
  const inForce = active?.file ?? active?.made;
  const auxiliary = notedAuxiliary(context, choice);
  const journal = (folders: readonly string[]): Journal => ({
    version: 1,
    ...takenBy(wanted.owner, state.journal),
    unchained: isListed ? undefined : true,
    folders: folders.length === 0 ? undefined : folders,
    auxiliary: auxiliary.length === 0 ? undefined : auxiliary,
  });
  const kept = keptFolders(context, chaining, isListed);
  const added = chaining.folder === undefined ? [] : [chaining.folder];
  const folders = [...new Set([...(state.journal?.folders ?? []), ...added])];
  const before = journal(folders);
  const restored = configs
    .filter((found) => found !== active && (isListed || isOurs(found, state)))
    .flatMap((found) => restore(context, found));
  const broken = configs.filter(({ config }) => config.kind === "invalid").map(({ name }) => name);
  return {
    steps: {
      journal: noted(paths, before, state.journalBytes),
      plugin: pluginInPlace(context, wanted),
      chain: chaining.changes,
      rest: [
        ...restored,
        ...staleLists(context, chaining.file),
        ...restoreSetAside(context, (name) => isListed || hasChained(name, state)),
        ...staleOriginals(context, [chaining.keeps, ...broken], [...chaining.changes, ...restored]),
        ...(choice?.way === "edit" ? [] : withoutDropins(context, kept)),
        // Until pods are chained in another way, the files of the last one stay.
        ...(wanted.chained && path === undefined ? [] : withoutFormerAuxiliary(state, path)),
        // Another installer may be running its own plugin there.
        ...state.leftovers.filter((path) => !paths.plugins.some((each) => path === `${each}${TEMPORARY}`)).map(remove),
        ...withoutFolders(context, kept),
        ...withoutKubeconfig(context, chaining),
        ...noted(paths, journal(folders.filter((folder) => kept.includes(folder))), encodeJournal(before)),
        ...directoriesNoted(context),
      ],
    },
    chain: path,
    choice,
    dropin:
      chaining.folder === undefined
        ? undefined
        : { folder: join(paths.netDir, chaining.folder), stands: foldersOfOurs(context).includes(chaining.folder) },
    neighbours,
    active: active?.name,
    inForce: inForce?.name,
    findings: isListed ? findings(configs) : [],
    loopback: isListed ? loopback : undefined,
  };
}

/** The steps that restore every configuration as its owner wrote it. */
export function planRestoration(state: NodeState, paths: Paths): readonly Change[] {
  const context = { paths, state };
  return [
    ...pristine(state).flatMap((found) => restore(context, found)),
    ...staleLists(context, undefined),
    ...restoreSetAside(context, () => true),
    ...withoutDropins(context),
    ...withoutFormerAuxiliary(state),
    ...(paths.auxiliary !== undefined && state.auxiliary.some(({ name, ignored }) => name === DROPIN_FILE && !ignored)
      ? [remove(paths.auxiliary)]
      : []),
  ];
}

/**
 * The steps that restore every byte of the node's files: chain, kubeconfig, plugin, then our notes, except those of files
 * that are not mounted here.
 */
export function planRemoval(state: NodeState, paths: Paths, keepPlugin: boolean): readonly Change[] {
  const context = { paths, state };
  const { hiddenAuxiliary: hidden, journal: { owner = "" } = {} } = state;
  const restored = planRestoration(state, paths);
  return [
    ...restored,
    // A crash may have come between the removal of a drop-in and the runtime's reading.
    ...((state.journal?.folders ?? []).length === 0 ? [] : [{ do: "reread", path: paths.reread } as const]),
    remove(paths.kubeconfig),
    ...(keepPlugin ? [] : paths.plugins.map(remove)),
    ...staleOriginals(context, [], restored),
    ...state.leftovers.map(remove),
    // An installer that had lost the node may have made one again.
    ...foldersOfLists(state).map((folder): Change => ({ do: "rmdir", path: join(paths.netDir, folder) })),
    ...withoutFolders(context),
    remove(paths.directories),
    ...(hidden.length === 0
      ? [remove(paths.journal)]
      : noted(paths, { version: 1, owner, left: true, auxiliary: hidden }, state.journalBytes)),
  ];
}
