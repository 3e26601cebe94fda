/** Chooses how to chain a node's pods, and finds what is in force. */
import { DROPIN_FILE, readsDropins, whyNoDropins } from "../../cni/conflist/dropin";
import { type Config, readConfig } from "../../cni/conflist/read";
import type { Chaining } from "../../cni/contract";
import { PLUGIN_TYPE } from "../../cni/stanza";
import type { FoundFile, NodeState } from "../state/node-state";

/** The place of our stanza: in a drop-in, in the owner's list, or in Multus' auxiliary chain. */
export type Way = Exclude<Chaining, "auto">;

/** The chosen way. */
export interface Choice {
  readonly way: Way;
  /** The reason, for the log. */
  readonly why: string;
  /** Why it is not possible, and the remedy. */
  readonly problem?: string;
}

/** The inputs of the choice. */
export interface Situation {
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
  /** Whether another kind of file has the folder's name. */
  readonly isOccupied: boolean;
}

const READERS = "containerd 2.1 and CRI-O 1.34 do";

/** Why the runtime does not append a drop-in to the configuration; undefined if it does, as far as known. */
function whyNotDropin({ runtime, unread, path, config, isOccupied }: Situation): string | undefined {
  const why = whyNoDropins(config);
  if (why !== undefined) return `${path} ${why}`;
  if (isOccupied && config.kind === "list") return `${config.name} beside ${path} is not a directory`;
  if (readsDropins(runtime) === false) return `${runtime} does not read drop-ins (${READERS})`;
  if (unread) return `${runtime ?? "the container runtime"} did not read the folder of drop-ins`;
  return undefined;
}

/**
 * Chooses between a drop-in and an edited list. If the runtime is unknown, for instance because the API server does not
 * answer, the node's chain stays.
 */
export function choose(situation: Situation): Choice {
  const { chaining, runtime, stands } = situation;
  if (chaining === "edit") return { way: "edit", why: "chaining is edit" };
  const whyNot = whyNotDropin(situation);
  if (chaining === "dropin") {
    const problem = `chaining is dropin, but ${whyNot}: set chaining to auto or edit`;
    return { way: "dropin", why: "chaining is dropin", ...(whyNot === undefined ? {} : { problem }) };
  }
  if (whyNot !== undefined) return { way: "edit", why: whyNot };
  if (runtime !== undefined) return { way: "dropin", why: `${runtime} reads drop-ins` };
  const unknown = "the node's container runtime is not known yet";
  return stands ? { way: "dropin", why: `${unknown}: it stays` } : { way: "edit", why: unknown };
}

/** The type of a drop-in's plugin; undefined if the file is not a plugin's configuration. */
function typeOf({ name, bytes }: FoundFile): string | undefined {
  const config = bytes === undefined ? undefined : readConfig(name, bytes);
  return config?.kind === "single" ? config.types[0] : undefined;
}

/** Whether a drop-in calls our plugin. */
export const isOursDropin = (file: FoundFile): boolean => typeOf(file) === PLUGIN_TYPE;

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
  if (state.auxiliary !== undefined) return isOursDropin(state.auxiliary);
  const config = file?.bytes === undefined ? undefined : readConfig(file.name, file.bytes);
  if (config?.kind !== "list") return false;
  const isRead = readsDropins(runtime) !== false;
  return config.types.at(-1) === PLUGIN_TYPE || (isRead && dropinsOf(config, state).some(isOursDropin));
}

/** Problems and warnings about the drop-ins of others. */
export interface Neighbours {
  /** Reasons for which the runtime cannot load the network. */
  readonly problem?: string;
  readonly warnings: readonly string[];
}

/** @param folder path of the folder */
export function judgeNeighbours(files: readonly FoundFile[], folder: string): Neighbours {
  const others = files.filter(({ name, ignored }) => name !== DROPIN_FILE && ignored !== true);
  const invalid = others.find((file) => file.hidden === undefined && typeOf(file) === undefined);
  const unseen = others.flatMap(({ name, problem, hidden }) =>
    hidden === undefined
      ? []
      : [`${folder}/${name} ${problem}: the container runtime cannot load the network unless it is fine; ${hidden}`],
  );
  const twice = others.filter(isOursDropin).map(({ name }) => `${folder}/${name} calls ${PLUGIN_TYPE}, too: remove it`);
  const last = others
    .filter(({ name }) => name > DROPIN_FILE)
    .map(({ name }) => `${folder}/${name} comes after ${DROPIN_FILE}: what its plugin changes is not redirected`);
  return {
    ...(invalid === undefined
      ? {}
      : {
          problem: `${folder}/${invalid.name} is not the configuration of a plugin: the container runtime cannot load the network; correct the file or remove it`,
        }),
    warnings: [...unseen, ...twice, ...last],
  };
}
