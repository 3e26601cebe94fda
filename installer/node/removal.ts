import { join } from "node:path";
import { readConfig } from "../../cni/conflist/read";
import { PLUGIN_TYPE } from "../../cni/stanza";
import type { Change } from "./disk";
import { type FoundFile, madeLists, type NodeState } from "./node-state";
import type { Places } from "./places";
import { planRemoval, planRestoration } from "./plan";

/** Between two looks: in it a half-written file is finished, and pods that began with the chain have got through it. */
const PAUSE_MS = 1_000;
/** Six looks take five seconds: the questions before them and these have to fit into a pod's 30 s. */
const MOST_LOOKS = 6;

const callsPlugin = new RegExp(`"type"\\s*:\\s*"${PLUGIN_TYPE}"`);

/** What a file that runtimes read says about the plugin when the chains are restored. */
function verdict({ name, bytes }: FoundFile, state: NodeState): "calls" | "unfinished" | "fine" {
  const wasOurs = state.originals.has(name) || madeLists(state)[name] !== undefined;
  if (bytes === undefined) return wasOurs ? "calls" : "fine";
  // Wherever it stands: also in what Multus delegates to.
  if (callsPlugin.test(Buffer.from(bytes).toString("utf8"))) return "calls";
  return wasOurs && readConfig(name, bytes).kind === "invalid" ? "unfinished" : "fine";
}

/** Takes away what a node has of us, the plugin not before nothing calls it any more. */
export class Removal {
  private looks = 0;

  constructor(
    private readonly places: Places,
    private readonly keepPlugin: boolean,
  ) {}

  /**
   * What to do next, and how long to wait before the next look; 0: with these changes all is done.
   * @throws where a configuration still calls the plugin after the last look
   */
  next(state: NodeState): { readonly changes: readonly Change[]; readonly pauseMs: number } {
    this.looks += 1;
    const restoration = planRestoration(state, this.places);
    const verdicts = state.configs.map((file) => [file.name, verdict(file, state)] as const);
    const waits = restoration.length > 0 || verdicts.some(([, each]) => each !== "fine");
    if (!waits) return { changes: planRemoval(state, this.places, this.keepPlugin), pauseMs: 0 };
    if (this.looks < MOST_LOOKS) return { changes: restoration, pauseMs: PAUSE_MS };
    const [calling] = verdicts.filter(([, each]) => each === "calls");
    if (calling === undefined) return { changes: planRemoval(state, this.places, this.keepPlugin), pauseMs: 0 };
    throw new Error(
      `${join(this.places.netDir, calling[0])} still calls ${PLUGIN_TYPE}: plugin and kubeconfig stay; take it out there, or let its owner write it anew, and remove them by hand`,
    );
  }
}
