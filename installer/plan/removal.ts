import { join } from "node:path";
import { compareNames, readConfig } from "../../cni/conflist/read";
import { PLUGIN_TYPE } from "../../cni/stanza";
import type { FoundFile, NodeState } from "../state/node-state";
import type { Paths } from "../state/paths";
import type { Change } from "./change";
import { activeOf, madeLists, planRemoval, planRestoration, pristine } from "./plan";

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

/** Files that runtimes come to before the configuration in force, and that one; all of them where none is. */
function upToActive(state: NodeState): readonly FoundFile[] {
  const active = activeOf(pristine(state));
  const last = active?.made?.name ?? active?.name;
  return state.configs.filter(({ name }) => last === undefined || compareNames(name, last) <= 0);
}

/** What a removal does next. */
export interface Next {
  readonly changes: readonly Change[];
  /** Before the next look; 0: there is none. */
  readonly pauseMs: number;
  /** Files that go on calling the plugin, and are not in force. */
  readonly warnings?: readonly string[];
  /** Why what was installed stays for good. */
  readonly problem?: string;
}

/** Takes away what a node has of us, the plugin not before nothing that is in force calls it. */
export class Removal {
  private looks = 0;

  constructor(
    private readonly paths: Paths,
    private readonly keepPlugin: boolean,
  ) {}

  next(state: NodeState): Next {
    this.looks += 1;
    const restoration = planRestoration(state, this.paths);
    const files = upToActive(state).map((file) => ({ name: file.name, is: verdict(file, state) }));
    const unsettled = files.filter(({ is }) => is !== "fine");
    const isLast = this.looks >= MOST_LOOKS;
    if (!isLast && restoration.length + unsettled.length > 0) return { changes: restoration, pauseMs: PAUSE_MS };
    const calling = unsettled.find(({ is }) => is === "calls");
    if (calling !== undefined) return { changes: restoration, pauseMs: 0, problem: this.problem(calling.name) };
    const behind = state.configs.filter((file) => verdict(file, state) === "calls").map(({ name }) => this.path(name));
    const warnings = behind.map((path) => `${path}, which is not in force, calls the removed plugin`);
    return { changes: planRemoval(state, this.paths, this.keepPlugin), pauseMs: 0, warnings };
  }

  private path(name: string): string {
    return join(this.paths.netDir, name);
  }

  private problem(name: string): string {
    return `${this.path(name)} still calls ${PLUGIN_TYPE}: the plugin and its kubeconfig stay; remove the stanza from this file, or let its owner write the file again, then delete both by hand`;
  }
}
