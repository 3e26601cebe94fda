import { join } from "node:path";
import { chained, hasStanza, isChained, listOf, type StanzaJson } from "../cni/conflist/edit";
import { compareNames, readConfig } from "../cni/conflist/read";
import { PLUGIN_TYPE } from "../cni/stanza";
import type { Change } from "./disk";
import { encodeJournal, JOURNAL_NAME, type Journal, originalName } from "./journal";
import { activeOf, type FoundFile, type NodeState, type Pristine, pristine } from "./node-state";

/** Where things lie, as seen from here. */
export interface Places {
  readonly netDir: string;
  readonly binDir: string;
  readonly pluginSource: string;
  readonly kubeconfigName: string;
}

/** What a node with the plugin has. */
export interface Wanted {
  readonly owner: string;
  readonly stanza: StanzaJson;
  readonly kubeconfig: string;
}

/** A file that runtimes look at and that is no valid configuration. */
export interface Finding {
  readonly file: string;
  readonly reason: string;
}

export interface Plan {
  readonly changes: readonly Change[];
  /** The file that holds the chain when the changes are done; absent where there is nothing to chain to. */
  readonly chain?: string;
  readonly findings: readonly Finding[];
}

const KUBECONFIG_MODE = 0o600;
const JOURNAL_MODE = 0o600;
const PLUGIN_MODE = 0o755;

interface Context {
  readonly places: Places;
  readonly state: NodeState;
}

/** What became of one configuration, in the order in which it must happen. */
interface Part {
  readonly changes: readonly Change[];
  readonly file?: string;
  /** Name of the kept original that must stay. */
  readonly keeps?: string;
  readonly made?: Readonly<Record<string, string>>;
}

const same = (left: Uint8Array | undefined, right: Uint8Array): boolean =>
  left !== undefined && Buffer.compare(left, right) === 0;

function put(context: Context, name: string, bytes: Uint8Array, file: FoundFile | undefined): Change {
  return { do: "write", path: join(context.places.netDir, name), bytes, mode: file?.mode ?? 0o644 };
}

function keep({ places, state }: Context, file: FoundFile, bytes: Uint8Array): readonly Change[] {
  const path = join(places.netDir, originalName(file.name));
  const kept = state.originals.get(file.name);
  if (same(kept?.bytes, bytes) && kept?.target === file.target) return [];
  return same(file.bytes, bytes) && file.target !== undefined
    ? [{ do: "link", path, target: file.target }]
    : [{ do: "write", path, bytes, mode: file.mode }];
}

function chainList(context: Context, active: Pristine, file: FoundFile, stanza: StanzaJson): Part {
  const part = { file: file.name, keeps: file.name };
  const now = file.bytes === undefined ? undefined : readConfig(file.name, file.bytes);
  if (active.config.kind !== "list" || (now?.kind === "list" && isChained(now, stanza)))
    return { ...part, changes: [] };
  const bytes = Buffer.from(chained(active.config, stanza));
  return { ...part, changes: [...keep(context, file, active.bytes), put(context, file.name, bytes, file)] };
}

/** A name for the list made of a single plugin's file: free, and with no other configuration between the two. */
function madeName({ state }: Context, from: string): string {
  const reuse = Object.entries(state.journal?.made ?? {}).find(([, original]) => original === from)?.[0];
  if (reuse !== undefined) return reuse;
  const others = state.configs.map(({ name }) => name).filter((name) => name !== from);
  const between = (name: string, candidate: string) =>
    compareNames(name, candidate) === 0 || compareNames(name, from) === Math.sign(compareNames(candidate, name));
  const candidates = [`${from.slice(0, from.lastIndexOf("."))}.conflist`, `${from}.conflist`];
  return candidates.find((candidate) => !others.some((name) => between(name, candidate))) ?? `${from}.conflist`;
}

function chainSingle(context: Context, active: Pristine, stanza: StanzaJson): Part {
  if (active.config.kind !== "single") return { changes: [] };
  const { netDir } = context.places;
  const name = active.made?.name ?? madeName(context, active.name);
  const bytes = Buffer.from(listOf(active.config, active.name, stanza));
  const there = context.state.configs.find((file) => file.name === name);
  const write = same(there?.bytes, bytes) ? [] : [put(context, name, bytes, active.file ?? there)];
  const aside: readonly Change[] =
    active.file === undefined
      ? []
      : [{ do: "rename", from: join(netDir, active.name), path: join(netDir, originalName(active.name)) }];
  return { changes: [...write, ...aside], file: name, keeps: active.name, made: { [name]: active.name } };
}

function chain(context: Context, active: Pristine | undefined, stanza: StanzaJson): Part {
  if (active === undefined) return { changes: [] };
  return active.config.kind === "list" && active.file !== undefined
    ? chainList(context, active, active.file, stanza)
    : chainSingle(context, active, stanza);
}

/** Puts one configuration back as its owner wrote it. */
function restore({ places, state }: Context, found: Pristine): readonly Change[] {
  const { name, bytes, file, made } = found;
  const path = join(places.netDir, name);
  const back: Change = { do: "rename", from: join(places.netDir, originalName(name)), path };
  if (made !== undefined) return [back, { do: "remove", path: join(places.netDir, made.name) }];
  if (file === undefined || file.bytes === undefined || same(file.bytes, bytes)) return [];
  const now = readConfig(name, file.bytes);
  if (now.kind !== "list" || !hasStanza(now)) return [];
  const kept = state.originals.get(name);
  return [same(kept?.bytes, bytes) ? back : { do: "write", path, bytes, mode: file.mode }];
}

/** Lists that we made and that stand for nothing any more. */
function staleLists({ places, state }: Context, keeps: string | undefined): readonly Change[] {
  const present = new Set(state.configs.map(({ name }) => name));
  return Object.entries(state.journal?.made ?? {})
    .filter(([list, from]) => present.has(list) && present.has(from) && list !== keeps)
    .map(([list]) => ({ do: "remove", path: join(places.netDir, list) }));
}

/** Kept originals that belong to nothing any more, and that none of the changes moves back. */
function staleOriginals(
  { places, state }: Context,
  keeps: string | undefined,
  done: readonly Change[],
): readonly Change[] {
  const moved = new Set(done.map((change) => (change.do === "rename" ? change.from : "")));
  return [...state.originals.keys()]
    .filter((name) => name !== keeps)
    .map((name) => join(places.netDir, originalName(name)))
    .filter((path) => !moved.has(path))
    .map((path) => ({ do: "remove", path }));
}

function journalled({ places, state }: Context, journal: Journal, before?: Journal): readonly Change[] {
  const bytes = encodeJournal(journal);
  const last = before ?? state.journal;
  if (last !== undefined && same(encodeJournal(last), bytes)) return [];
  return [{ do: "write", path: join(places.netDir, JOURNAL_NAME), bytes, mode: JOURNAL_MODE }];
}

function findings(configs: readonly Pristine[]): readonly Finding[] {
  return configs.flatMap(({ name, config }) =>
    config.kind === "invalid" ? [{ file: name, reason: config.reason }] : [],
  );
}

function pluginInPlace({ places, state }: Context): readonly Change[] {
  const path = join(places.binDir, PLUGIN_TYPE);
  return state.plugin === "current" ? [] : [{ do: "copy", from: places.pluginSource, path, mode: PLUGIN_MODE }];
}

function kubeconfigInPlace({ places, state }: Context, text: string): readonly Change[] {
  const bytes = Buffer.from(text);
  const { kubeconfig } = state;
  if (same(kubeconfig?.bytes, bytes) && kubeconfig?.mode === KUBECONFIG_MODE) return [];
  return [{ do: "write", path: join(places.netDir, places.kubeconfigName), bytes, mode: KUBECONFIG_MODE }];
}

/**
 * What it takes from this state to a node whose active configuration ends in our stanza: journal, plugin, kubeconfig,
 * chain, then everything that is left from before. Empty where nothing is to be done.
 */
export function planInstall(state: NodeState, places: Places, wanted: Wanted): Plan {
  const context = { places, state };
  const configs = pristine(state);
  const active = activeOf(configs);
  const part = chain(context, active, wanted.stanza);
  const journal = (made: Journal["made"]): Journal => ({ version: 1, owner: wanted.owner, made });
  const before = journal({ ...state.journal?.made, ...part.made });
  const restored = configs.filter((found) => found !== active).flatMap((found) => restore(context, found));
  return {
    changes: [
      ...state.leftovers.map((path): Change => ({ do: "remove", path })),
      ...journalled(context, before),
      ...pluginInPlace(context),
      ...kubeconfigInPlace(context, wanted.kubeconfig),
      ...part.changes,
      ...restored,
      ...staleLists(context, part.file),
      ...staleOriginals(context, part.keeps, restored),
      ...journalled(context, journal(part.made ?? {}), before),
    ],
    ...(part.file === undefined ? {} : { chain: part.file }),
    findings: findings(configs),
  };
}

/** What it takes to put every byte of the node's files back: chain, kubeconfig, plugin, then our own notes. */
export function planRemoval(state: NodeState, places: Places, keepPlugin: boolean): readonly Change[] {
  const context = { places, state };
  const remove = (directory: string, name: string): Change => ({ do: "remove", path: join(directory, name) });
  const restored = pristine(state).flatMap((found) => restore(context, found));
  return [
    ...restored,
    ...staleLists(context, undefined),
    remove(places.netDir, places.kubeconfigName),
    ...(keepPlugin ? [] : [remove(places.binDir, PLUGIN_TYPE)]),
    ...staleOriginals(context, undefined, restored),
    ...state.leftovers.map((path): Change => ({ do: "remove", path })),
    remove(places.netDir, JOURNAL_NAME),
  ];
}
