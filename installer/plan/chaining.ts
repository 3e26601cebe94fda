/** Chooses how to chain a node's pods, and finds what is in force. */
import { DROPIN_FILE, whyNoDropins } from "../../cni/conflist/dropin";
import { type Config, readConfig, readDropin } from "../../cni/conflist/read";
import type { Chaining } from "../../cni/contract";
import { readsDropins } from "../../cni/runtime";
import { isPlugin, PLUGIN_TYPE } from "../../cni/stanza";
import { textOf } from "../../system/bytes";
import { basename, dirname, join } from "../../system/path";
import type { FoundFile, NodeState } from "../state/node-state";

/** The place of our stanza: in a drop-in, in the owner's list, or in Multus' auxiliary chain. */
type Way = Exclude<Chaining, "auto">;

/** The chosen way. */
export interface Choice {
  readonly way: Way;
  /** The reason, for the log. */
  readonly why: string;
  /** Why it is not possible, and the remedy. */
  readonly problem?: string | undefined;
}

/** The inputs of the choice. */
interface Situation {
  readonly chaining: Exclude<Chaining, "auxiliary">;
  /** As in the Node's status: `containerd://2.2.9`; undefined if unknown. */
  readonly runtime?: string | undefined;
  /** The runtime has not read the folder when asked to. */
  readonly unread: boolean;
  /** Whether our drop-in is already in place. */
  readonly stands: boolean;
  /** The configuration in force, by its path. */
  readonly path: string;
  readonly config: Config;
  /** A name beside the list that our drop-in cannot have: that of its folder, or of the file, taken by another kind of file. */
  readonly occupied?: string | undefined;
}

const READERS = "containerd 2.1 and CRI-O 1.34 do";

/** Why the runtime does not append a drop-in to the configuration; undefined if it does, as far as known. */
function whyNotDropin({ runtime, unread, path, config, occupied }: Situation): string | undefined {
  const why = whyNoDropins(config);
  if (why !== undefined) return `${path} ${why}`;
  if (occupied !== undefined) return `${occupied} beside ${path} is ${occupied.includes("/") ? "" : "not "}a directory`;
  if (readsDropins(runtime) === false) return `${runtime} does not read drop-ins (${READERS})`;
  if (unread) return `${runtime ?? "the container runtime"} did not read the folder of drop-ins`;
  return undefined;
}

/**
 * Chooses between a drop-in and an edited list. If the runtime is unknown, for instance because the API server does not
 * answer, the node's chain stays.
 */
export function choose(situation: Situation): Choice {
  const choice = chooseWay(situation);
  const { config, path } = situation;
  if (choice.way !== "edit" || config.kind !== "list" || config.types.length > 0) return choice;
  return { ...choice, problem: `${path} has no "plugins" to add to (${choice.why}): set chaining to auto or dropin` };
}

function chooseWay(situation: Situation): Choice {
  const { chaining, runtime, stands } = situation;
  if (chaining === "edit") return { way: "edit", why: "chaining is edit" };
  const whyNot = whyNotDropin(situation);
  if (chaining === "dropin") {
    const problem = whyNot && `chaining is dropin, but ${whyNot}: set chaining to auto or edit`;
    return { way: "dropin", why: "chaining is dropin", problem };
  }
  if (whyNot !== undefined) return { way: "edit", why: whyNot };
  if (runtime !== undefined) return { way: "dropin", why: `${runtime} reads drop-ins` };
  const unknown = "the node's container runtime is not known yet";
  return stands ? { way: "dropin", why: `${unknown}: it stays` } : { way: "edit", why: unknown };
}

const MULTUS = ["multus", "multus-shim"];
/** Where the daemon's container sees the node's root, in Multus' own manifest and OpenShift's. */
const DAEMON_ROOT = /^\/host(root)?(?=\/)/;
const OTHERWISE = "or set chained to false and install the chart linkerd-multus";

interface MultusConfiguration {
  readonly type?: unknown;
  readonly auxiliaryCNIChainName?: unknown;
  readonly clusterNetwork?: unknown;
}

/** The settings of Multus in a configuration that calls it: its daemon writes its own there, too. */
function multusIn(config: Config): MultusConfiguration | undefined {
  if (config.kind === "invalid") return undefined;
  const at = config.types.findIndex((type) => MULTUS.includes(type));
  if (at < 0) return undefined;
  const value = JSON.parse(textOf(config.bytes));
  return config.kind === "list" ? value.plugins[at] : value;
}

/**
 * Why Multus does not call what lies in the folder of its auxiliary chain; undefined if it does.
 * @param path of the configuration in force
 * @param folder as a path on the node
 */
export function whyNoAuxiliary(config: Config, path: string, folder: string): string | undefined {
  const multus = multusIn(config);
  if (multus === undefined) return `${path} does not call Multus: set chaining to auto`;
  const { auxiliaryCNIChainName: name, clusterNetwork, type } = multus;
  if (typeof name !== "string" || name === "") {
    return `Multus has no auxiliary chain, since ${path} has no auxiliaryCNIChainName: set it in Multus' configuration (Multus 4.2.2), update OpenShift to 4.22, ${OTHERWISE}`;
  }
  const network = typeof clusterNetwork === "string" ? clusterNetwork : "";
  const directory = dirname(network.replace(DAEMON_ROOT, ""));
  // A daemon may see the node's directories elsewhere; what is seen of them there says nothing.
  const isKnown = network.startsWith("/") && (DAEMON_ROOT.test(network) || type === "multus");
  const isThere = name === basename(folder) && (!isKnown || directory === dirname(folder));
  if (isThere) return undefined;
  const is = isKnown ? join(directory, name) : `a folder ${name}`;
  return `Multus has its auxiliary chain in ${is} by ${path}, not in ${folder}: set multus.auxiliaryChainDir to it`;
}

/** The type of a drop-in's plugin; undefined if the file is not a plugin's configuration. */
function typeOf({ bytes }: FoundFile): string | undefined {
  const config = bytes === undefined ? undefined : readDropin(bytes);
  return config?.kind === "single" ? config.types[0] : undefined;
}

/** Whether a drop-in calls our plugin. */
export const isOursDropin = (file: FoundFile): boolean => isPlugin(typeOf(file));

/** The drop-ins that the runtime appends to a configuration. */
export function dropinsOf(config: Config, { dropins }: Pick<NodeState, "dropins">): readonly FoundFile[] {
  return whyNoDropins(config) === undefined && config.kind === "list" ? (dropins.get(config.name) ?? []) : [];
}

/** Whether a chain ends in our plugin, with a stanza of any installer in any place. */
export function isInForce(
  file: FoundFile | undefined,
  state: Pick<NodeState, "dropins" | "auxiliary">,
  runtime: string | undefined,
): boolean {
  if (state.auxiliary.some(isOursDropin)) return true;
  const config = file?.bytes === undefined ? undefined : readConfig(file.name, file.bytes);
  if (config?.kind !== "list") return false;
  const isRead = readsDropins(runtime) !== false;
  return isPlugin(config.types.at(-1)) || (isRead && dropinsOf(config, state).some(isOursDropin));
}

/** The plugins that a chain calls besides ours, and the files of others beside ours. */
export interface Neighbours {
  /** Types of the plugins. */
  readonly types: readonly string[];
  /** Why the chain cannot be loaded. */
  readonly problem?: string | undefined;
  readonly warnings: readonly string[];
}

/** What becomes of a chain with a file that cannot be loaded. */
const CONSEQUENCE = {
  list: "the container runtime cannot load the network",
  auxiliary: "Multus skips the auxiliary chain, so no pod is redirected",
} as const;

/**
 * Judges the files of others that are part of a chain. @param files in the folder, ours included @param folder its path
 */
export function judgeNeighbours(
  files: readonly FoundFile[],
  folder: string,
  chain: keyof typeof CONSEQUENCE,
): Neighbours {
  const others = files.filter(({ name, ignored }) => name !== DROPIN_FILE && ignored !== true);
  const broken = others.filter((file) => typeOf(file) === undefined);
  // A network that the runtime cannot load is visible: no pod starts. Pods that Multus does not redirect are not.
  const isWarning = ({ hidden }: FoundFile) => hidden !== undefined && chain === "list";
  const say = (file: FoundFile) => {
    const unless = isWarning(file) ? " unless the file is valid" : "";
    return `${folder}/${file.name} ${whyNotRead(file)}: ${CONSEQUENCE[chain]}${unless}; ${file.hidden ?? "correct the file or remove it"}`;
  };
  const problem = broken.find((file) => !isWarning(file));
  const twice = others.filter(isOursDropin).map(({ name }) => `${folder}/${name} calls ${PLUGIN_TYPE}, too: remove it`);
  const last = others
    .filter(({ name }) => name > DROPIN_FILE)
    .map(({ name }) => `${folder}/${name} comes after ${DROPIN_FILE}: what its plugin changes is not redirected`);
  return {
    types: others.flatMap((file) => typeOf(file) ?? []).filter((type) => !isPlugin(type)),
    problem: problem && say(problem),
    warnings: [...broken.filter(isWarning).map(say), ...twice, ...last],
  };
}

/** Why libcni does not read a file as a plugin's configuration. */
function whyNotRead({ bytes, problem }: FoundFile): string {
  const config = bytes === undefined ? undefined : readDropin(bytes);
  return problem ?? (config?.kind === "invalid" ? config.reason : "is not the configuration of a plugin");
}
