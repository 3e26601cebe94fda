import { readFileSync } from "node:fs";
import type { Log } from "../../process/log";
import { basename } from "../../system/path";
import type { Instruments } from "../telemetry/instruments";
import type { Backoff } from "./backoff";

/** Number of undone repairs in a row from which each one causes a warning. */
const LASTING_FIGHT = 3;

/** Agents known to write CNI configurations, and the remedy if one undoes our changes. */
const WRITERS: readonly (readonly [RegExp, string, string])[] = [
  [/cilium/, "cilium-agent", "set Cilium's cni.exclusive to false"],
  [/calico|canal/, "calico-node", "look at its container install-cni"],
  [/multus/, "multus", "let Multus delegate to the chained configuration, or use the Multus operator"],
  [/flannel|cbr0/, "kube-flannel", "look at its container install-cni"],
  [/weave/, "weave-net", "look at its launcher"],
  [/kindnet/, "kindnetd", "look at its DaemonSet"],
  [/aws-cni|aws-vpc/, "aws-node", "look at its DaemonSet"],
  [/azure/, "azure-cns", "look at its DaemonSet"],
  [/ovn/, "ovnkube-node", "look at its DaemonSet"],
  [/istio/, "istio-cni-node", "look at its DaemonSet"],
  [/gke|gcp|netd/, "netd", "look at its DaemonSet"],
];

/** The probable writer of a file, by its name and content. */
function likelyWriter(name: string, text: string): { readonly writer: string; readonly remedy: string } {
  const found = WRITERS.find(([mark]) => mark.test(name)) ?? WRITERS.find(([mark]) => mark.test(text));
  if (found !== undefined) return { writer: found[1], remedy: found[2] };
  return { writer: "unknown", remedy: "find the agent that owns the file" };
}

function readLoosely(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/**
 * Reports the program that keeps undoing our changes of a file that other programs write, too. Serves edited lists, the
 * plugin and the kubeconfig; no other program writes a drop-in.
 */
export class Contests {
  constructor(private readonly deps: { readonly log: Log; readonly instruments: Instruments }) {}

  report(path: string, { level, contests }: Backoff): void {
    const { log, instruments } = this.deps;
    const { writer, remedy } = likelyWriter(basename(path), readLoosely(path));
    instruments.contested.inc({ file: basename(path), writer });
    const message = `${path} was changed back, probably by ${writer} (${contests} in a row): ${remedy}`;
    const lasting = contests === LASTING_FIGHT || level >= LASTING_FIGHT;
    log[lasting ? "warn" : "info"](message);
  }
}
