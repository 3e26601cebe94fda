import { DROPIN_FILE } from "../../cni/conflist/dropin";
import { compareNames, readConfig } from "../../cni/conflist/read";
import { callsPlugin, DROPIN_TYPE, PLUGIN_TYPE } from "../../cni/stanza";
import { textOf } from "../../system/bytes";
import { join } from "../../system/path";
import type { FoundFile, NodeState } from "../state/node-state";
import type { Paths } from "../state/paths";
import { dropinsOf, isOursDropin } from "./chaining";
import type { Change } from "./change";
import { activeOf, hasChained, planRemoval, planRestoration, pristine } from "./plan";

/**
 * Pause between two looks, in which half-written files are finished, and pods that started with the chain finish it.
 */
const PAUSE_MS = 1_000;
/** Pause before the result of a change is checked. */
const SHORT_PAUSE_MS = 1;
/** Six looks take five seconds: together with the requests before them they must fit into a pod's 30 s. */
const MOST_LOOKS = 6;

/** Whether a file that runtimes read still calls the plugin after the chains are restored. */
function verdict({ name, bytes }: FoundFile, state: NodeState): "calls" | "unfinished" | "fine" {
  const wasOurs = hasChained(name, state);
  if (bytes === undefined) return wasOurs ? "calls" : "fine";
  if (callsPlugin(textOf(bytes))) return "calls";
  return wasOurs && readConfig(name, bytes).kind === "invalid" ? "unfinished" : "fine";
}

/** The configuration in force and the files before it; all files if none is in force. */
function upToActive(state: NodeState): readonly FoundFile[] {
  const active = activeOf(pristine(state));
  const last = active?.made?.name ?? active?.name;
  return state.configs.filter(({ name }) => last === undefined || compareNames(name, last) <= 0);
}

/** Drop-ins of others that call the plugin and that the runtime appends to the configuration in force. */
function dropinsInForce(state: NodeState): readonly string[] {
  const config = activeOf(pristine(state))?.config;
  if (config?.kind !== "list") return [];
  return dropinsOf(config, state)
    .filter((file) => file.name !== DROPIN_FILE && isOursDropin(file))
    .map(({ name }) => join(config.name, name));
}

/** A file of an earlier installer, in a folder that is not mounted here. */
export const leftMessage = (path: string): string =>
  `${path}, by an earlier installer, is not mounted here and may still call ${DROPIN_TYPE}: delete it on the node`;

/** The next step of a removal. */
export interface Next {
  readonly changes: readonly Change[];
  /** Pause before the next look; 0 if there is none. */
  readonly pauseMs: number;
  /** What still calls the plugin: files that are not in force, attached pods. */
  readonly warnings?: readonly string[];
  /** Why the plugin stays permanently. */
  readonly problem?: string;
}

/** Names of the attachments for which the plugin will still be called; undefined if unknown. */
export type Attachments = () => readonly string[] | undefined;

/** Keeps the directory of attachments non-empty until it is complete. */
const INCOMPLETE = "incomplete";

/**
 * Removes our files from a node; the plugin only when no configuration in force calls it. A drop-in and the auxiliary chain
 * are one file; of an edited list, each byte of the owner's comes back.
 */
export class Removal {
  private looks = 0;
  private step: "note" | "compare" | "done" = "note";
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
    // An owner may be writing a file under our name: one look remains to remove ours.
    const canWait = this.looks < MOST_LOOKS - 1;
    if (canWait && files.some(({ is }) => is === "unfinished")) return { changes: [], pauseMs: PAUSE_MS };
    const unsettled = files.filter(({ is }) => is !== "fine");
    const isLast = this.looks >= MOST_LOOKS;
    if (!isLast && restoration.length + unsettled.length > 0) return { changes: restoration, pauseMs: PAUSE_MS };
    const calling = unsettled.find(({ is }) => is === "calls");
    if (calling !== undefined) return { changes: restoration, pauseMs: 0, problem: this.problem(calling.name) };
    // Multus ends each pod with the auxiliary chain that started it, which libcni's cache does not show.
    const isAuxiliary = (state.journal?.auxiliary ?? []).length > 0;
    const known = isAuxiliary ? undefined : this.attachments();
    if (known !== undefined && this.step !== "done") return this.noteAttachments(known);
    const behind = state.configs.filter((file) => verdict(file, state) === "calls").map(({ name }) => this.path(name));
    const warnings = behind.map((path) => `${path}, which is not in force, calls the removed plugin`);
    const keeps = this.keepPlugin || isAuxiliary;
    if (known === undefined && keeps) warnings.push(`${this.plugins} stay: a pod may need them to end`);
    warnings.push(...state.hiddenAuxiliary.map(leftMessage));
    if (known === undefined) return { changes: planRemoval(state, this.paths, keeps), pauseMs: 0, warnings };
    const left = state.attached.length > 0;
    if (left) warnings.push(`attached pods still call ${this.plugins}, which are removed with the last of them`);
    return { changes: planRemoval(state, this.paths, left), pauseMs: 0, warnings };
  }

  /**
   * Lists beside the plugin what still calls it. Attachments that began or ended at the same moment are visible after a
   * pause.
   */
  private noteAttachments(known: readonly string[]): Next {
    const { paths, noted } = this;
    const path = (name: string) => join(paths.attached, name);
    const add = (name: string): Change => ({ do: "write", path: path(name), bytes: new Uint8Array(), mode: 0o600 });
    const remove = (name: string): Change => ({ do: "remove", path: path(name) });
    switch (this.step) {
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

  private get plugins(): string {
    return this.paths.plugins.join(" and ");
  }

  private path(name: string): string {
    return join(this.paths.netDir, name);
  }

  private problem(name: string): string {
    return `${this.path(name)} still calls ${PLUGIN_TYPE}: the plugin stays; remove the stanza from this file, or let its owner write the file again, then delete the plugin by hand`;
  }
}
