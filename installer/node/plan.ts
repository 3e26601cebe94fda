import { join } from "node:path";
import { isRenamed, type StanzaJson } from "../../cni/conflist/edit";
import { readConfig } from "../../cni/conflist/read";
import type { Change } from "./disk";
import { digest, encodeJournal, type Journal, originalName } from "./journal";
import { activeOf, adopted, madeLists, type NodeState, type Pristine, pristine } from "./node-state";
import type { Places } from "./places";
import { type Chaining, type Context, chain, removed, restore, restoreSetAside, same } from "./plan-chain";

/** What a node with the plugin has. */
export interface Wanted {
  readonly owner: string;
  /** Whether the active configuration ends in the stanza. */
  readonly chained: boolean;
  readonly stanza: StanzaJson;
  readonly kubeconfig: string;
}

/** A file that runtimes look at and that is no valid configuration. */
export interface Finding {
  readonly file: string;
  readonly reason: string;
  /** What would show it: on the node it may be valid all the same. */
  readonly hidden?: string | undefined;
}

/** The order of the steps is what keeps a node whole: no chain names what is not there yet. */
export const STEPS = ["journal", "plugin", "kubeconfig", "chain", "rest"] as const;
export type Step = (typeof STEPS)[number];

export interface Plan {
  readonly steps: Readonly<Record<Step, readonly Change[]>>;
  /** The file that holds the chain when the changes are done; absent where there is nothing to chain to. */
  readonly chain?: string;
  /** The configuration that is chained, by the name that its owner gave it. */
  readonly active?: string;
  /**
   * Types of the plugins that are chained with ours, where the plugin directory holds none of them: the container runtime
   * may search another one. Empty where it holds one.
   */
  readonly absentNeighbours: readonly string[];
  /** The plugin directory of the installer before us, where it is another one; as a path on the node. */
  readonly formerBinDir?: string;
  /** Lists that linkerd's own installer seems to have made of a single plugin's file. */
  readonly renamed: readonly string[];
  /** Files in front of the active one, or all of them where none is active. */
  readonly findings: readonly Finding[];
}

const PRIVATE = 0o600;
const EXECUTABLE = 0o755;

/** Lists that we made and that stand for nothing any more. */
function staleLists(context: Context, keeps: string | undefined): readonly Change[] {
  const { state } = context;
  const present = new Set(state.configs.map(({ name }) => name));
  return Object.entries(madeLists(state))
    .filter(([list, from]) => present.has(list) && present.has(from) && list !== keeps)
    .map(([list]) => removed(context, list));
}

/** Kept originals that belong to nothing any more, and that none of the changes moves back. */
function staleOriginals(context: Context, keeps: readonly unknown[], done: readonly Change[]): readonly Change[] {
  const moved = new Set(done.map((change) => (change.do === "rename" ? change.from : "")));
  return [...context.state.originals.keys()]
    .filter((name) => !keeps.includes(name) && !Object.values(adopted(context.state)).includes(name))
    .map((name) => join(context.places.netDir, originalName(name)))
    .filter((path) => !moved.has(path))
    .map((path) => ({ do: "remove", path }));
}

function journalled({ places, state }: Context, journal: Journal, before?: Journal): readonly Change[] {
  const bytes = encodeJournal(journal);
  const last = before ?? state.journal;
  if (last !== undefined && same(encodeJournal(last), bytes)) return [];
  return [{ do: "write", path: places.journal, bytes, mode: PRIVATE }];
}

function findings(configs: readonly Pristine[], active: Pristine | undefined): readonly Finding[] {
  const until = active === undefined ? configs.length : configs.indexOf(active);
  return configs
    .slice(0, until)
    .flatMap(({ name, config, file }) =>
      config.kind === "invalid" && file?.ignored !== true
        ? [{ file: name, reason: config.reason, hidden: file?.hidden }]
        : [],
    );
}

/** Only files whose chain is not of our making are looked at. */
function renamed({ configs, journal, originals }: NodeState): readonly string[] {
  return configs.flatMap(({ name, bytes }) => {
    if (bytes === undefined || originals.has(name) || journal?.made[name] !== undefined) return [];
    const config = readConfig(name, bytes);
    return config.kind === "list" && isRenamed(config) ? [name] : [];
  });
}

function pluginInPlace({ places, state }: Context): readonly Change[] {
  if (state.plugin.is === "current") return [];
  return [{ do: "install", from: places.image, path: places.plugin, mode: EXECUTABLE }];
}

function withoutRemains({ plugin }: NodeState): readonly Change[] {
  return plugin.remains.map(({ path, isDirectory }) => ({ do: isDirectory ? "rmdir" : "remove", path }));
}

function kubeconfigInPlace({ places, state }: Context, text: string): readonly Change[] {
  const bytes = Buffer.from(text);
  if (same(state.kubeconfig?.bytes, bytes) && state.kubeconfig?.mode === PRIVATE) return [];
  return [{ do: "write", path: places.kubeconfig, bytes, mode: PRIVATE }];
}

/** What the active configuration is made of, where its owner has it behind a link. */
function linked({ originals }: NodeState, active: Pristine | undefined): Pick<Journal, "links"> {
  if (active?.config.kind !== "list") return {};
  const { name, file } = active;
  const owners = file?.target === undefined ? originals.get(name) : file;
  if (owners?.target === undefined || owners.bytes === undefined) return {};
  return { links: { [name]: digest(owners.bytes) } };
}

/** Whether we have chained a configuration; a stanza in others is somebody else's. */
function isOurs({ name, made }: Pristine, { originals }: NodeState): boolean {
  return made !== undefined || originals.has(name);
}

/** The same of a file that is not there under its name. */
function hasChained(name: string, { journal, originals }: NodeState): boolean {
  return originals.has(name) || journal?.made[name] !== undefined;
}

/** What it takes from this state to a node that is as wanted; nothing where it is. */
export function planInstall(state: NodeState, places: Places, wanted: Wanted): Plan {
  const context = { places, state };
  const configs = pristine(state);
  const active = wanted.chained ? activeOf(configs) : undefined;
  const chaining: Chaining = chain(context, active, wanted.stanza);
  const journal = (made: Journal["made"]): Journal => ({ version: 1, owner: wanted.owner, made });
  const { links } = state.journal ?? {};
  const types = active === undefined || active.config.kind === "invalid" ? [] : active.config.types;
  const absentNeighbours = types.some((type) => state.executables.includes(type)) ? [] : types;
  const noted = state.journal === undefined ? places.onNode.binDir : state.journal.binDir;
  const formerBinDir = noted === places.onNode.binDir ? undefined : noted;
  const before = {
    ...journal({ ...madeLists(state), ...chaining.made }),
    ...(links === undefined ? {} : { links }),
    ...(noted === undefined ? {} : { binDir: noted }),
  };
  // A directory that the runtime does not seem to search does not take the former one's place.
  const binDir = absentNeighbours.length > 0 && formerBinDir !== undefined ? formerBinDir : places.onNode.binDir;
  const restored = configs
    .filter((found) => found !== active && (wanted.chained || isOurs(found, state)))
    .flatMap((found) => restore(context, found));
  const broken = configs.filter(({ config }) => config.kind === "invalid").map(({ name }) => name);
  return {
    steps: {
      journal: journalled(context, before),
      plugin: pluginInPlace(context),
      kubeconfig: kubeconfigInPlace(context, wanted.kubeconfig),
      chain: chaining.changes,
      rest: [
        ...restored,
        ...staleLists(context, chaining.file),
        ...restoreSetAside(context, (name) => wanted.chained || hasChained(name, state)),
        ...staleOriginals(context, [chaining.keeps, ...broken], restored),
        ...journalled(
          context,
          { ...journal({ ...adopted(state), ...chaining.made }), ...linked(state, active), binDir },
          before,
        ),
        ...state.leftovers.map((path): Change => ({ do: "remove", path })),
        ...(state.plugin.is === "current" && state.plugin.settled ? withoutRemains(state) : []),
      ],
    },
    ...(chaining.file === undefined ? {} : { chain: chaining.file }),
    ...(active === undefined ? {} : { active: active.name }),
    absentNeighbours,
    ...(formerBinDir === undefined ? {} : { formerBinDir }),
    renamed: renamed(state),
    findings: wanted.chained ? findings(configs, active) : [],
  };
}

/** What it takes to put every configuration back as its owner wrote it. */
export function planRestoration(state: NodeState, places: Places): readonly Change[] {
  const context = { places, state };
  return [
    ...pristine(state).flatMap((found) => restore(context, found)),
    ...staleLists(context, undefined),
    ...restoreSetAside(context, () => true),
  ];
}

/** What it takes to put every byte of the node's files back: chain, kubeconfig, plugin, then our own notes. */
export function planRemoval(state: NodeState, places: Places, keepPlugin: boolean): readonly Change[] {
  const context = { places, state };
  const remove = (path: string): Change => ({ do: "remove", path });
  const restored = planRestoration(state, places);
  return [
    ...restored,
    remove(places.kubeconfig),
    ...(keepPlugin ? [] : [remove(places.plugin)]),
    // A plugin of a former version that stays needs its directory.
    ...(keepPlugin && state.plugin.is === "other" ? [] : withoutRemains(state)),
    ...staleOriginals(context, [], restored),
    ...state.leftovers.map(remove),
    remove(places.journal),
  ];
}
