import { DROPIN_FILE } from "../../cni/conflist/dropin";
import { compareNames, readConfig } from "../../cni/conflist/read";
import { PLUGIN_TYPE } from "../../cni/stanza";
import { textOf } from "../../system/bytes";
import { join } from "../../system/path";
import type { FoundFile, NodeState } from "../state/node-state";
import type { Paths } from "../state/paths";
import { dropinsOf, isOursDropin } from "./chaining";
import type { Change } from "./change";
import { activeOf, madeLists, planRemoval, planRestoration, pristine } from "./plan";

/** Between two looks: in it a half-written file is finished, and pods that began with the chain have got through it. */
const PAUSE_MS = 1_000;
/** Before a look at what has just been done. */
const SHORT_PAUSE_MS = 1;
/** Six looks take five seconds: the questions before them and these have to fit into a pod's 30 s. */
const MOST_LOOKS = 6;

const callsPlugin = new RegExp(`"type"\\s*:\\s*"${PLUGIN_TYPE}"`);

/** What a file that runtimes read says about the plugin when the chains are restored. */
function verdict({ name, bytes }: FoundFile, state: NodeState): "calls" | "unfinished" | "fine" {
  const wasOurs = state.originals.has(name) || madeLists(state)[name] !== undefined;
  if (bytes === undefined) return wasOurs ? "calls" : "fine";
  // Wherever it stands: also in what Multus delegates to.
  if (callsPlugin.test(textOf(bytes))) return "calls";
  return wasOurs && readConfig(name, bytes).kind === "invalid" ? "unfinished" : "fine";
}

/** Files that runtimes come to before the configuration in force, and that one; all of them if none is. */
function upToActive(state: NodeState): readonly FoundFile[] {
  const active = activeOf(pristine(state));
  const last = active?.made?.name ?? active?.name;
  return state.configs.filter(({ name }) => last === undefined || compareNames(name, last) <= 0);
}

/** Drop-ins of others that call the plugin, as the runtime appends them to the configuration in force. */
function dropinsInForce(state: NodeState): readonly string[] {
  const config = activeOf(pristine(state))?.config;
  if (config?.kind !== "list") return [];
  return dropinsOf(config, state)
    .filter((file) => file.name !== DROPIN_FILE && isOursDropin(file))
    .map(({ name }) => join(config.name, name));
}

/** What a removal does next. */
export interface Next {
  readonly changes: readonly Change[];
  /** Before the next look; 0: there is none. */
  readonly pauseMs: number;
  /** What goes on calling the plugin: files that are not in force, attached pods. */
  readonly warnings?: readonly string[];
  /** Why what was installed stays for good. */
  readonly problem?: string;
}

/** Names of the attachments that the plugin will be called to end; undefined if that cannot be seen. */
export type Attachments = () => readonly string[] | undefined;

/** Keeps the directory of the attachments from being empty before it is complete. */
const INCOMPLETE = "incomplete";

/** Takes away what a node has of us, the plugin not before nothing that is in force calls it. */
export class Removal {
  private looks = 0;
  private step: "kubeconfig" | "note" | "compare" | "done" = "kubeconfig";
  private noted: readonly string[] = [];

  /** @param keepPlugin whether the plugin stays if the attachments cannot be seen */
  constructor(
    private readonly paths: Paths,
    private readonly keepPlugin: boolean,
    private readonly attachments: Attachments = () => undefined,
  ) {}

  next(state: NodeState): Next {
    this.looks += 1;
    const restoration = planRestoration(state, this.paths);
    const files = [
      ...upToActive(state).map((file) => ({ name: file.name, is: verdict(file, state) })),
      ...dropinsInForce(state).map((name) => ({ name, is: "calls" as const })),
    ];
    // A name of ours may be that of an owner's file by now, which he is writing: one look is left to take ours away.
    const isPatient = this.looks < MOST_LOOKS - 1;
    if (isPatient && files.some(({ is }) => is === "unfinished")) return { changes: [], pauseMs: PAUSE_MS };
    const unsettled = files.filter(({ is }) => is !== "fine");
    const isLast = this.looks >= MOST_LOOKS;
    if (!isLast && restoration.length + unsettled.length > 0) return { changes: restoration, pauseMs: PAUSE_MS };
    const calling = unsettled.find(({ is }) => is === "calls");
    if (calling !== undefined) return { changes: restoration, pauseMs: 0, problem: this.problem(calling.name) };
    const known = this.attachments();
    if (known !== undefined && this.step !== "done") return this.noteAttachments(known);
    const behind = state.configs.filter((file) => verdict(file, state) === "calls").map(({ name }) => this.path(name));
    const warnings = behind.map((path) => `${path}, which is not in force, calls the removed plugin`);
    if (known === undefined) return { changes: planRemoval(state, this.paths, this.keepPlugin), pauseMs: 0, warnings };
    const left = state.attached.length > 0;
    if (left) warnings.push(`attached pods still call ${this.paths.plugin}: it goes with the last of them`);
    return { changes: planRemoval(state, this.paths, left), pauseMs: 0, warnings };
  }

  /**
   * Lists beside the plugin who still calls it. Without a kubeconfig nothing is attached from now on; what was attached or
   * ended at the same moment shows a pause later.
   */
  private noteAttachments(known: readonly string[]): Next {
    const { paths, noted } = this;
    const path = (name: string) => join(paths.attached, name);
    const add = (name: string): Change => ({ do: "write", path: path(name), bytes: new Uint8Array(), mode: 0o600 });
    const remove = (name: string): Change => ({ do: "remove", path: path(name) });
    switch (this.step) {
      case "kubeconfig":
        this.step = "note";
        return { changes: [{ do: "remove", path: paths.kubeconfig }], pauseMs: PAUSE_MS };
      case "note":
        this.noted = known;
        this.step = known.length > 0 ? "compare" : "done";
        if (known.length === 0) return { changes: [], pauseMs: SHORT_PAUSE_MS };
        return {
          changes: [{ do: "mkdir", path: paths.attached }, ...[INCOMPLETE, ...known].map(add)],
          pauseMs: PAUSE_MS,
        };
      default:
        this.step = "done";
        return {
          changes: [
            ...known.filter((name) => !noted.includes(name)).map(add),
            ...[...noted.filter((name) => !known.includes(name)), INCOMPLETE].map(remove),
            { do: "rmdir", path: paths.attached },
          ],
          pauseMs: SHORT_PAUSE_MS,
        };
    }
  }

  private path(name: string): string {
    return join(this.paths.netDir, name);
  }

  private problem(name: string): string {
    return `${this.path(name)} still calls ${PLUGIN_TYPE}: the plugin and its kubeconfig stay; remove the stanza from this file, or let its owner write the file again, then delete both by hand`;
  }
}
