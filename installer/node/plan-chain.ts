import { join } from "node:path";
import { chained, hasStanza, isChained, listOf, type StanzaJson, unchained } from "../../cni/conflist/edit";
import { sameJson } from "../../cni/conflist/equal";
import { compareNames, readConfig } from "../../cni/conflist/read";
import type { Change, Seen } from "./disk";
import { originalName } from "./journal";
import { type FoundFile, madeLists, type NodeState, ordinary, type Pristine, SET_ASIDE } from "./node-state";
import type { Places } from "./places";

export interface Context {
  readonly places: Places;
  readonly state: NodeState;
}

/** How the active configuration comes to end in our stanza. */
export interface Chaining {
  /** In the order in which they must happen. */
  readonly changes: readonly Change[];
  /** The file that holds the chain. */
  readonly file?: string;
  /** The file whose original must be kept. */
  readonly keeps?: string;
  /** The list made, and what it is made of. */
  readonly made?: Readonly<Record<string, string>>;
}

export const same = (left: Uint8Array | undefined, right: Uint8Array): boolean =>
  left !== undefined && Buffer.compare(left, right) === 0;

const sameText = (left: string, right: string): boolean => sameJson(JSON.parse(left), JSON.parse(right));

/** What stands under a name that runtimes read. */
function seen({ places, state }: Context, name: string): Seen {
  const files = [...state.configs, ...state.setAside];
  return { path: join(places.netDir, name), bytes: files.find((file) => file.name === name)?.bytes };
}

function put(context: Context, name: string, bytes: Uint8Array, file: FoundFile | undefined): Change {
  const { mode = 0o644, owner } = file ?? {};
  return { do: "write", path: join(context.places.netDir, name), bytes, mode, owner, seen: seen(context, name) };
}

function keep(context: Context, file: FoundFile, bytes: Uint8Array): readonly Change[] {
  const { places, state } = context;
  const path = join(places.netDir, originalName(file.name));
  const kept = state.originals.get(file.name);
  // The owner's own, whatever others have added to the list that is made of it.
  if (kept?.target !== undefined && !same(file.bytes, bytes)) return [];
  if (same(kept?.bytes, bytes) && (file.target === undefined || kept?.target === file.target)) return [];
  return same(file.bytes, bytes) && file.target !== undefined
    ? [{ do: "link", path, target: file.target }]
    : [keptFile(context, file, { path, bytes })];
}

/** The owner's file itself, unless it is ours by now: then what it would be without us. */
function keptFile(context: Context, file: FoundFile, { path, bytes }: { path: string; bytes: Uint8Array }): Change {
  const { name, mode, owner } = file;
  return same(file.bytes, bytes)
    ? { do: "keep", from: join(context.places.netDir, name), path, bytes, mode, owner, seen: seen(context, name) }
    : { do: "write", path, bytes, mode, owner };
}

function chainList(context: Context, active: Pristine, file: FoundFile, stanza: StanzaJson): Chaining {
  const chaining = { file: file.name, keeps: file.name };
  const now = file.bytes === undefined ? undefined : readConfig(file.name, file.bytes);
  if (active.config.kind !== "list") return { ...chaining, changes: [] };
  const asWanted = now?.kind === "list" && isChained(now, stanza) && sameText(unchained(now), active.config.text);
  if (asWanted) return { ...chaining, changes: [] };
  const bytes = Buffer.from(chained(active.config, stanza));
  return { ...chaining, changes: [...keep(context, file, active.bytes), put(context, file.name, bytes, file)] };
}

/** A name for the list made of a single plugin's file: free, and with no other configuration between the two. */
function madeName({ state }: Context, from: string): string {
  const reuse = Object.entries(madeLists(state)).find(([, original]) => original === from)?.[0];
  if (reuse !== undefined) return reuse;
  const others = state.configs.map(({ name }) => name).filter((name) => name !== from);
  const between = (name: string, candidate: string) =>
    compareNames(name, candidate) === 0 || compareNames(name, from) === compareNames(candidate, name);
  const candidates = [`${from.slice(0, from.lastIndexOf("."))}.conflist`, `${from}.conflist`];
  return candidates.find((candidate) => !others.some((name) => between(name, candidate))) ?? `${from}.conflist`;
}

function chainSingle(context: Context, active: Pristine, stanza: StanzaJson): Chaining {
  if (active.config.kind !== "single") return { changes: [] };
  const { netDir } = context.places;
  const path = join(netDir, originalName(active.name));
  const name = active.made?.name ?? madeName(context, active.name);
  const bytes = Buffer.from(listOf(active.config, active.name, stanza));
  const there = context.state.configs.find((file) => file.name === name);
  const write = same(there?.bytes, bytes) ? [] : [put(context, name, bytes, active.file ?? there)];
  const aside: readonly Change[] =
    active.file === undefined
      ? []
      : [{ do: "rename", from: join(netDir, active.name), path, seen: seen(context, active.name) }];
  return { changes: [...write, ...aside], file: name, keeps: active.name, made: { [name]: active.name } };
}

/** Plans the chain in the active configuration, if there is one. */
export function chain(context: Context, active: Pristine | undefined, stanza: StanzaJson): Chaining {
  if (active === undefined) return { changes: [] };
  return active.config.kind === "list" && active.file !== undefined
    ? chainList(context, active, active.file, stanza)
    : chainSingle(context, active, stanza);
}

/** Removes a file that runtimes read. */
export function removed(context: Context, name: string): Change {
  return { do: "remove", path: join(context.places.netDir, name), seen: seen(context, name) };
}

/** Puts one configuration back as its owner wrote it. */
export function restore(context: Context, found: Pristine): readonly Change[] {
  const { places, state } = context;
  const { name, bytes, file, made } = found;
  const path = join(places.netDir, name);
  const asSeen = seen(context, name);
  const back: Change = { do: "rename", from: join(places.netDir, originalName(name)), path, seen: asSeen };
  const list = made === undefined ? [] : [removed(context, made.name)];
  if (file === undefined) return [back, ...list];
  if (file.bytes === undefined || same(file.bytes, bytes)) return [];
  const now = readConfig(name, file.bytes);
  if (now.kind !== "list" || !hasStanza(now)) return [];
  const kept = state.originals.get(name);
  // An owner's link comes back whatever others have added: behind it he goes on writing.
  return [
    same(kept?.bytes, bytes) || kept?.target !== undefined
      ? back
      : { do: "write", path, bytes, mode: file.mode, owner: file.owner, seen: asSeen },
  ];
}

/** Takes our stanza out of the configurations that another agent has set aside, and may bring back when we are gone. */
export function restoreSetAside(context: Context, isOurs: (name: string) => boolean): readonly Change[] {
  return context.state.setAside.flatMap((file) => {
    const name = file.name.slice(0, -SET_ASIDE.length);
    if (!isOurs(name)) return [];
    const { bytes } = ordinary({ ...file, name }, context.state.originals.get(name));
    return file.bytes === undefined || same(file.bytes, bytes) ? [] : [put(context, file.name, bytes, file)];
  });
}
