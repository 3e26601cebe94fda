import { join } from "node:path";
import { type InCluster, readApiServer } from "../kubernetes/in-cluster";
import { apply, type Change, type Disk } from "./disk";
import { kubeconfig } from "./kubeconfig";
import type { Log } from "./log";
import type { NodeState } from "./node-state";
import { observe } from "./observe";
import { type Places, type Plan, planInstall, planRemoval } from "./plan";
import type { PluginCopy } from "./plugin-copy";
import type { Settings } from "./settings";
import { readStanza } from "./stanza-source";

/** What the node looks like after the last look. */
export interface Status {
  /** Absolute path of the file that holds the chain. */
  readonly chain?: string;
  /** Why a pod that starts now is not chained. */
  readonly problem?: string;
}

export interface Tools {
  readonly settings: Settings;
  /** This process among all installers that this node has had and has. */
  readonly owner: string;
  readonly disk: Disk;
  readonly plugin: PluginCopy;
  readonly log: Log;
}

/** Brings the node into the wanted state, and back. */
export interface Keeper {
  /** Looks, and changes what has to be changed. Never throws. */
  reconcile(): Status;
  /** Puts the node back as it was, unless another installer has taken it over. */
  remove(keepPlugin: boolean): void;
}

export function placesOf(settings: Settings): Places {
  return {
    netDir: settings.netDir.here,
    binDir: settings.binDir.here,
    pluginSource: join(settings.pluginDir, "linkerd-cni"),
    kubeconfigName: settings.kubeconfigName,
  };
}

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

function describe(change: Change): string {
  if (change.do === "copy") return `wrote ${change.path}`;
  if (change.do === "rename") return `renamed ${change.from} to ${change.path}`;
  return `${change.do === "remove" ? "removed" : "wrote"} ${change.path}`;
}

/** Says a thing when it is new, not at every look. */
function sayOnce(say: (message: string) => void): (messages: readonly string[]) => void {
  let said: ReadonlySet<string> = new Set();
  return (messages) => {
    for (const message of messages) if (!said.has(message)) say(message);
    said = new Set(messages);
  };
}

function statusOf(plan: Plan, places: Places): Status {
  if (plan.chain !== undefined) return { chain: join(places.netDir, plan.chain) };
  return { problem: `no valid CNI configuration in ${places.netDir} yet: install a primary CNI` };
}

export function createKeeper({ settings, owner, disk, plugin, log }: Tools): Keeper {
  const places = placesOf(settings);
  const warnings = sayOnce(log.warn);
  const problems = sayOnce(log.error);
  const chains = sayOnce((path) => log.info(`${path} ends in our stanza: pods that start from now on are chained`));
  const run = (changes: readonly Change[]) => {
    for (const change of changes) {
      apply(change, disk);
      log.info(describe(change));
    }
  };
  let installed = false;
  const install = (): Status => {
    const cluster: InCluster = settings.cluster;
    const state: NodeState = observe(places, plugin);
    const successor = state.journal?.owner;
    if (installed && successor !== undefined && successor !== owner) {
      return { problem: `${successor} has installed since: leaving the node to it` };
    }
    const plan = planInstall(state, places, {
      owner,
      stanza: readStanza(settings),
      kubeconfig: kubeconfig(readApiServer(cluster)),
    });
    warnings(plan.findings.map(({ file, reason }) => `${join(places.netDir, file)} ${reason}: passed over`));
    run(plan.changes);
    installed = true;
    return statusOf(plan, places);
  };
  return {
    reconcile: () => {
      let status: Status;
      try {
        status = install();
      } catch (error) {
        status = { problem: textOf(error) };
      }
      problems(status.problem === undefined ? [] : [status.problem]);
      chains(status.chain === undefined ? [] : [status.chain]);
      return status;
    },
    remove: (keepPlugin) => {
      const state = observe(places, plugin);
      if (state.journal !== undefined && state.journal.owner !== owner) {
        log.info(`${state.journal.owner} has installed since: left all in place`);
        return;
      }
      run(planRemoval(state, places, keepPlugin));
    },
  };
}
