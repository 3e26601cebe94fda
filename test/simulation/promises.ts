/**
 * What the product promises about a node. The simulation judges each promise at its moments; times are those of the code,
 * in milliseconds.
 */
import { type Files, textOf } from "./files";
import type { Node } from "./node";
import { BIN_DIR, type Chain, configsIn, NET_DIR, OTHERS, OURS, pluginsOf } from "./runtime";

/** How soon a node is chained again, if an installer runs and the API server answers. */
export const within = {
  /** Of the first start, with the plugin's copy and the first questions. */
  start: 6_000,
  /** After a write of the owner. */
  ownerWrite: 2_000,
  /** Longest pause before a change that the owner keeps undoing is made again, and for how long a write counts. */
  contest: 30_000,
  contestedFor: 20_000,
  /** After an installer has died or is silent, and another one takes the node. */
  takeOver: 17_000,
  /** After the API server has refused or not answered. */
  refusal: 16_000,
  /** For how long the API server must refuse a stopping installer's tokens. */
  refusalConfirmed: 1_500,
  /** After the configuration directory was replaced: the installer's container ends within ten seconds, and starts again after ten. */
  newContainer: 40_000,
  /** After the disk works again. */
  repair: 12_000,
  /** After the container runtime became another one: it is asked for every minute. */
  otherRuntime: 75_000,
  /** Changes of the owner's file in a minute. */
  writesInAMinute: 30,
};

export type Moment =
  | "at any time"
  | "when it must be chained"
  | "when a pod starts on a ready node"
  | "when a grace period ends"
  | "after an uninstall";

interface Promised {
  readonly when: Moment;
  /** Why it does not hold; undefined if it does. */
  readonly broken: (node: Node) => string | undefined;
}

const called = (plugins: Chain) => `called: ${plugins?.join(", ") ?? "nothing, it does not start"}`;

/** Drop-ins call the plugin by a name of their own. */
const isOurs = (plugin: string) => plugin === OURS || plugin === `${OURS}-redirect`;
const shown = (files: Files, name: string) => `${name} is ${JSON.stringify(files.textIfAny(`${NET_DIR}/${name}`))}`;

/** Whether a configuration, or what the installer keeps beside it, holds what the owner wrote last. */
const isKept = ({ files, owner }: Node): boolean =>
  [...files.inode(NET_DIR).entries.values()].some(({ kind, bytes }) => kind === "file" && owner.isIn(textOf(bytes)));

export const promised = {
  "nothing that the owner wrote is lost": {
    when: "at any time",
    broken: (node) => {
      if (node.owner.isWriting || isKept(node)) return undefined;
      return `no file holds version ${node.owner.version} of ${shown(node.files, node.owner.agent.file)}`;
    },
  },
  "a chain never calls ours twice": {
    when: "at any time",
    broken: ({ files, runtime }) => {
      // CRI-O reads at a rename, and may see a drop-in beside an edit for a moment: the plugin sets the same rules again.
      if (runtime.name === "CRI-O 1.34") return undefined;
      const twice = configsIn(files).find((name) => (pluginsOf(files, name, false) ?? []).filter(isOurs).length > 1);
      return twice === undefined ? undefined : shown(files, twice);
    },
  },
  "a configuration that is in force stays valid": {
    when: "at any time",
    broken: ({ files, runtime, owner }) =>
      owner.isWriting || runtime.inForce() !== undefined
        ? undefined
        : `no valid file of ${configsIn(files).join(", ")}`,
  },
  "a chain never calls a plugin that does not run": {
    when: "at any time",
    broken: ({ files, runtime }) => {
      const broken = runtime
        .inForce()
        ?.filter(isOurs)
        .find((name) => files.textIfAny(`${BIN_DIR}/${name}`)?.startsWith("ours") !== true);
      return broken && `${broken} is ${files.textIfAny(`${BIN_DIR}/${broken}`) ?? "missing"}`;
    },
  },
  "the owner's plugins stay in force": {
    when: "at any time",
    broken: ({ runtime, owner }) => {
      const plugins = runtime.inForce();
      return owner.isWriting || plugins === undefined || plugins.includes("bridge") ? undefined : plugins.join(", ");
    },
  },
  "only an uninstall, or the owner, ends a chain": {
    when: "at any time",
    broken: (node) => {
      const isChained = node.runtime.inForce()?.some(isOurs) === true;
      const { files, owner } = node;
      const isCurrent = () => configsIn(files).some((name) => owner.isIn(files.text(`${NET_DIR}/${name}`)));
      if (isChained && node.isRuntimeKnown && isCurrent()) node.chained = owner.writtenAt;
      const mayEnd = owner.isWriting || node.isUninstalled || node.mayBeRemoved;
      return isChained || mayEnd || node.chained !== owner.writtenAt ? undefined : shown(node.files, owner.agent.file);
    },
  },
  "a node is chained in time": {
    when: "when it must be chained",
    broken: (node) => {
      const { api, disk, owner, runtime, working } = node;
      const cannot =
        [401, 403, 429].includes(api.mood as number) ||
        disk.isFull ||
        disk.isReadOnly ||
        owner.isFighting ||
        owner.isWriting;
      if (node.isUninstalled || cannot || working.length === 0) return undefined;
      const plugins = runtime.inForce();
      const last = plugins?.at(-1) ?? "";
      return isOurs(last) && !node.isSpent(last) ? undefined : `in force: ${plugins?.join(", ")}; ${lastLines(node)}`;
    },
  },
  "a pod that starts on a ready node is redirected": {
    when: "when a pod starts on a ready node",
    broken: ({ runtime }) => {
      const plugins = runtime.startPod();
      return plugins?.some(isOurs) === true ? undefined : called(plugins);
    },
  },
  "installers do not write without end": {
    when: "at any time",
    broken: ({ writes, copies, clock }) => {
      const lately = (times: readonly number[]) => times.filter((at) => at > clock.now - 60_000).length;
      const most = within.writesInAMinute;
      if (lately(copies) > most) return `${lately(copies)} copies of the plugin in a minute`;
      return lately(writes) <= most ? undefined : `${lately(writes)} changes of the owner's file in a minute`;
    },
  },
  "an installer ends when told": {
    when: "when a grace period ends",
    broken: (node) => `it runs: ${lastLines(node)}`,
  },
  "pods start after an uninstall, without the plugin": {
    when: "after an uninstall",
    broken: ({ owner, runtime }) => {
      if (owner.isWriting || !runtime.isCurrent) return undefined;
      const plugins = runtime.startPod();
      return plugins?.some(isOurs) === false ? undefined : called(plugins);
    },
  },
  "an uninstall leaves the bytes of the owner": {
    when: "after an uninstall",
    broken: ({ files, owner }) =>
      owner.isWriting || files.textIfAny(owner.path) === owner.text ? undefined : shown(files, owner.agent.file),
  },
  "an uninstall leaves nothing of ours": {
    when: "after an uninstall",
    broken: ({ files, owner }) => {
      const left = [...files.names(NET_DIR), ...files.names(BIN_DIR)];
      const others = left.filter((name) => ![owner.agent.file, ...OTHERS, ".owner"].includes(name));
      return others.length === 0 ? undefined : others.join(", ");
    },
  },
} as const satisfies Readonly<Record<string, Promised>>;

const lastLines = ({ pods }: Node): string =>
  [...pods.values()].map(({ name, process }) => `${name}: ${process.lines.slice(-2).join(" ").trim()}`).join("; ");
