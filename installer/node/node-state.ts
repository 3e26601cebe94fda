import { hasStanza, unchained } from "../../cni/conflist/edit";
import { sameJson } from "../../cni/conflist/equal";
import { type Config, compareNames, readConfig } from "../../cni/conflist/read";
import type { Owner } from "./disk";
import { digest, type Journal } from "./journal";

/** A file as it lies on the node. */
export interface FoundFile {
  readonly name: string;
  /** Absent where it cannot be read; `problem` says why. */
  readonly bytes?: Uint8Array;
  readonly problem?: string;
  readonly mode: number;
  readonly owner?: Owner;
  /** Where it is a symbolic link. */
  readonly target?: string;
  /** What would show it, where it cannot be seen from here: on the node it may be any configuration. */
  readonly hidden?: string;
  /** No runtime looks at it. */
  readonly ignored?: true;
}

/** The plugin as it lies on the node. */
export interface PluginState {
  /** Whether it is the image's own, byte for byte; `missing`: a runtime that calls it finds no file. */
  readonly is: "current" | "other" | "missing";
  /** What a former version left in its directory, inner first. */
  readonly remains: readonly Remain[];
  /** Nobody can be in the midst of starting a former version any more. */
  readonly settled: boolean;
}

export interface Remain {
  readonly path: string;
  readonly isDirectory: boolean;
}

/** Everything on the node that planning depends on. */
export interface NodeState {
  /** Files that container runtimes read. */
  readonly configs: readonly FoundFile[];
  /** Configurations that Cilium has set aside. */
  readonly setAside: readonly FoundFile[];
  /** Originals that are kept, by the name of the file they belong to. */
  readonly originals: ReadonlyMap<string, FoundFile>;
  readonly journal?: Journal;
  readonly kubeconfig?: FoundFile;
  readonly plugin: PluginState;
  /** Names of all files in the plugin directory. */
  readonly executables: readonly string[];
  /** Absolute paths of temporary files that a crash left. */
  readonly leftovers: readonly string[];
}

/**
 * Ending by which Cilium (`cni.exclusive`, its default) sets the configurations of others aside. It puts them back when
 * it is removed, and makes its own of one of them (`10-aws.conflist`).
 */
export const SET_ASIDE = ".cilium_bak";

/** A configuration as its owner wrote it: without us. */
export interface Pristine {
  readonly name: string;
  readonly config: Config;
  readonly bytes: Uint8Array;
  /** The file that stands for it now; absent where a list that we made does. */
  readonly file?: FoundFile;
  /** The list that we made of it. */
  readonly made?: FoundFile;
}

const EMPTY = new Uint8Array();

function parseLoosely(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString("utf8"));
  } catch {
    return undefined;
  }
}

/** The original's very bytes, unless somebody has changed the content since they were kept. */
function withoutUs(text: string, original: FoundFile | undefined, madeOf: string | undefined): Uint8Array {
  const stripped = Buffer.from(text);
  if (original?.bytes === undefined) return stripped;
  // Behind a link the owner goes on writing: what is new there counts more than what others add to the list.
  if (original.target !== undefined && madeOf !== digest(original.bytes)) return original.bytes;
  return sameJson(parseLoosely(original.bytes), parseLoosely(stripped)) ? original.bytes : stripped;
}

/**
 * A configuration that is a file of its owner's, with or without our stanza in it. Where that was a link, `madeOf` is the
 * digest of what it led to then.
 */
export function ordinary(file: FoundFile, original: FoundFile | undefined, madeOf?: string): Pristine {
  const { name, bytes, problem } = file;
  if (bytes === undefined) {
    return { name, file, bytes: EMPTY, config: { kind: "invalid", reason: problem ?? "cannot be read" } };
  }
  const config = readConfig(name, bytes);
  if (config.kind !== "list" || !hasStanza(config)) return { name, file, bytes, config };
  const own = withoutUs(unchained(config), original, madeOf);
  return { name, file, bytes: own, config: readConfig(name, own) };
}

/** What a list holds besides our stanza; nothing where it is no list. */
function othersIn(list: FoundFile): readonly unknown[] {
  const config = list.bytes === undefined ? undefined : readConfig(list.name, list.bytes);
  if (config?.kind !== "list") return [];
  return (JSON.parse(unchained(config)) as { readonly plugins: readonly unknown[] }).plugins;
}

/** Whether a list begins with what a single plugin's file holds. */
function beginsWith(list: FoundFile, original: FoundFile): boolean {
  const [first] = othersIn(list);
  return first !== undefined && original.bytes !== undefined && sameJson(first, parseLoosely(original.bytes));
}

/** Whether a list is a single plugin's configuration and our stanza, and nothing that somebody has added. */
function standsFor(list: FoundFile, original: FoundFile): boolean {
  return beginsWith(list, original) && othersIn(list).length === 1;
}

/** Names of single plugins' files that are set aside while their own name is free. */
function setAside({ configs, originals }: NodeState): readonly string[] {
  const present = new Set(configs.map(({ name }) => name));
  return [...originals.keys()].filter((name) => !name.endsWith(".conflist") && !present.has(name));
}

/** Whether the name that was noted for a list of ours has become that of somebody else's list, before we wrote it. */
function isTaken(list: string, from: string, { configs, originals }: NodeState): boolean {
  const [file, single] = [list, from].map((name) => configs.find((each) => each.name === name));
  if (file?.bytes === undefined || single === undefined) return false;
  const original = originals.get(from);
  const config = readConfig(list, file.bytes);
  const isOurs = config.kind !== "list" || hasStanza(config) || (original !== undefined && beginsWith(file, original));
  return !isOurs;
}

/** Lists that we made, and what of: by the journal, and where that is lost, by what the files hold. */
export function madeLists(state: NodeState): Journal["made"] {
  const noted = Object.entries(state.journal?.made ?? {}).filter(([list, from]) => !isTaken(list, from, state));
  const known = new Set(noted.map(([, from]) => from));
  const inferred = setAside(state).flatMap((from) => {
    const original = state.originals.get(from);
    if (known.has(from) || original === undefined) return [];
    return state.configs.filter((file) => beginsWith(file, original)).map(({ name }) => [name, from] as const);
  });
  return Object.fromEntries([...inferred, ...noted]);
}

/** A list that we made; one to which others have added something is a list like any other by now. */
function ofMade(made: FoundFile, from: string, state: NodeState): Pristine | undefined {
  if (state.configs.some(({ name }) => name === from)) return undefined;
  const original = state.originals.get(from);
  if (original?.bytes === undefined) return ordinary(made, undefined);
  const changed =
    made.bytes !== undefined && readConfig(made.name, made.bytes).kind === "list" && !standsFor(made, original);
  if (changed) return ordinary(made, state.originals.get(made.name));
  return { name: from, made, bytes: original.bytes, config: readConfig(from, original.bytes) };
}

/** Files that were set aside for a list which somebody has taken away. */
function orphans(state: NodeState, made: Journal["made"]): readonly Pristine[] {
  const present = new Set(state.configs.map(({ name }) => name));
  const held = new Set(Object.entries(made).flatMap(([list, from]) => (present.has(list) ? [from] : [])));
  return setAside(state).flatMap((name) => {
    const bytes = state.originals.get(name)?.bytes;
    return held.has(name) || bytes === undefined ? [] : [{ name, bytes, config: readConfig(name, bytes) }];
  });
}

/** The configuration directory as it would be without us, in the order in which runtimes look at it. */
export function pristine(state: NodeState): readonly Pristine[] {
  const made = madeLists(state);
  const found = state.configs.map((file) => {
    const from = made[file.name];
    if (from !== undefined) return ofMade(file, from, state);
    return ordinary(file, state.originals.get(file.name), state.journal?.links?.[file.name]);
  });
  return [...found.filter((each) => each !== undefined), ...orphans(state, made)].sort((left, right) =>
    compareNames(left.name, right.name),
  );
}

/** Lists that we made and others have added to, and the files set aside for them: those stay aside. */
export function adopted(state: NodeState): Journal["made"] {
  const entries = Object.entries(madeLists(state)).filter(([list, from]) => {
    const file = state.configs.find(({ name }) => name === list);
    return file !== undefined && ofMade(file, from, state)?.name === list && state.originals.has(from);
  });
  return Object.fromEntries(entries);
}

/** The loopback is no network for pods, even where its file comes first because the real one is not there yet. */
function isPodNetwork({ config }: Pristine): boolean {
  return config.kind !== "invalid" && config.types.some((type) => type !== "loopback");
}

/** The configuration that containerd and CRI-O use: the first valid one. */
export function activeOf(configs: readonly Pristine[]): Pristine | undefined {
  return configs.find(isPodNetwork);
}
