import { reasonOf } from "../../cni/errors";
import type { Log } from "../../process/log";
import { readFileSync } from "../../system/fs";
import { basename, join } from "../../system/path";
import type { Verdict } from "../api/access";
import { Changer } from "../apply/changer";
import type { Disk } from "../apply/disk";
import type { Choice } from "../plan/chaining";
import type { Change } from "../plan/change";
import { type Plan, planInstall, planLeaving, STEPS, type Step, type Wanted } from "../plan/plan";
import { type Attachments, type Next, Removal } from "../plan/removal";
import { movedFrom } from "../state/directories";
import type { NodeState } from "../state/node-state";
import { observe } from "../state/observe";
import type { Paths } from "../state/paths";
import type { PluginFile } from "../state/plugin-file";
import type { Instruments } from "../telemetry/instruments";
import { type Backoff, isContested, NO_BACKOFF, repaired, undone, waitMs } from "./backoff";
import {
  aloneMessage,
  blockedMessage,
  chainedMessage,
  hiddenMessage,
  passedOverMessage,
  renamedMessage,
  sayOnce,
} from "./messages";
import { callsPlugin, type Look, Ownership, type Turn, whyNoChain } from "./ownership";
import { RuntimeReads } from "./runtime-reads";
import { SettleDelay } from "./settle-delay";
import type { HandOver } from "./stop-decision";
import { likelyWriter } from "./writers";

/** What the node looks like after a look at it. */
export interface Status {
  /** Absolute path of the file that holds our stanza; absent if none is wanted. */
  readonly chain?: string;
  /** How pods are chained, and why so. */
  readonly choice?: Choice;
  /** Why a pod that starts now is not chained, or the plugin is not there for it. */
  readonly problem?: string;
  /** What may keep pods from starting, although nothing says that it does. */
  readonly warning?: string;
  /** When the next look is due, whatever happens. */
  readonly againInMs?: number;
}

export interface Deps {
  readonly paths: Paths;
  /** This installer among all that this node has had and has. */
  readonly owner: string;
  /** What is to be installed. Asked at each look, since it changes. @throws if it cannot be told */
  readonly wanted: () => Omit<Wanted, "owner" | "unread">;
  readonly disk: Disk;
  readonly plugin: PluginFile;
  /** Whether the API server lets the plugin in with what is to be installed, or with the token given. */
  readonly accepts: (token?: string) => Promise<Verdict>;
  /** Whether the node's runtime passes over a configuration that it cannot load; undefined if that is not known. */
  readonly passesOverBroken: () => boolean | undefined;
  readonly log: Log;
  readonly instruments: Instruments;
  readonly sleep: (ms: number) => Promise<unknown>;
}

interface RemovalOptions {
  /** The plugin stays, whatever else is removed. */
  readonly keepPlugin: boolean;
  /**
   * Also if another installer has the node, which may have been killed. Tells whether that one is a pod of our
   * DaemonSet; undefined if that is not known: then the installer that took the node keeps it.
   */
  readonly all?: (owner: string) => boolean | undefined;
  readonly attachments?: Attachments;
}

/** How often an installer that waits for the node looks at it. */
const WAITING_MS = 1_000;

/** How often a look begins again because others have just changed what it saw. */
const MOST_ROUNDS = 5;
const BUSY_MS = 100;

/** From how many repairs in a row on a fight is worth a warning: one at this point, and then for each at once undone. */
const LASTING_FIGHT = 3;

/**
 * What is tried: a step, or to replace another's stanza in a chain that calls our plugin all the same. linkerd's own
 * installer puts its stanza back for as long as it runs, and takes the chain away when it ends: then it must not have to
 * wait that this was tried often.
 */
type Attempt = Step | "stanza";

/** The last try of a step. */
interface Try {
  readonly backoff: Backoff;
  /** What was wanted. */
  readonly wanted: string;
  readonly failure?: string;
}

/** `inherited`: the pod's container before wrote it, or kept another's. */
type KubeconfigOwner = "own" | "inherited" | "another's";

/** The file that others write, of those that the changes are about: what is set aside has its owner's name. */
function contestedPath(changes: readonly Change[]): string {
  const last = changes.at(-1);
  return (last?.do === "rename" ? last.from : last?.path) ?? "";
}

/** Brings one node into the wanted state, keeps it there, and puts it back. */
export class Reconciler {
  private readonly warn: (messages: readonly string[]) => void;
  private readonly complain: (messages: readonly string[]) => void;
  private readonly announce: (messages: readonly string[]) => void;
  private readonly tries = new Map<Attempt, Try>();
  private readonly changer: Changer;
  private readonly settleDelay = new SettleDelay();
  private readonly ownership: Ownership;
  private readonly reads: RuntimeReads;
  /** Whose kubeconfig lies on the node; undefined before the first look. */
  private kubeconfig: KubeconfigOwner | undefined;

  constructor(private readonly deps: Deps) {
    this.changer = new Changer(deps);
    this.ownership = new Ownership({ ...deps, stage: () => this.changer.stage() });
    this.warn = sayOnce(deps.log.warn);
    this.complain = sayOnce(deps.log.error);
    this.announce = sayOnce(deps.log.info);
    this.reads = new RuntimeReads((folder) => this.changer.isRead(folder));
  }

  /** Looks, and changes what has to be changed. Never throws. `now` is in milliseconds, on a clock that does not go back. */
  async reconcile(now: number): Promise<Status> {
    const status = await this.look(now);
    this.complain(status.problem === undefined ? [] : [status.problem]);
    const { chain, choice } = status;
    this.announce(chain === undefined || choice === undefined ? [] : [chainedMessage(chain, choice)]);
    return status;
  }

  /**
   * Puts the node back as it was, unless another installer has it.
   * @throws if a configuration goes on calling the plugin: then that stays, with all that it needs
   */
  async remove({ keepPlugin, all, attachments }: RemovalOptions): Promise<void> {
    const { paths, plugin, sleep } = this.deps;
    const removal = new Removal(paths, keepPlugin, attachments);
    let first: string | undefined;
    for (;;) {
      const state = observe(paths, plugin);
      first ??= state.journal?.owner;
      if (!this.mayRemove(state, first, all)) return this.changer.unstage();
      const next = removal.next(state);
      if (await this.removed(next)) return;
      await sleep(Math.max(next.pauseMs, BUSY_MS));
    }
  }

  /**
   * Leaves everything in place, for the installer that runs or comes next.
   * @param handOver that one knows only edited lists, for certain or possibly
   */
  async leave(handOver?: HandOver): Promise<void> {
    const { paths, plugin, owner } = this.deps;
    const state = observe(paths, plugin);
    if (handOver !== undefined) await this.handOver(state, handOver === "certain");
    if (state.journal?.owner === owner) await this.changer.run(planLeaving(observe(paths, plugin), paths));
    else await this.changer.unstage();
  }

  /** Makes an edit of a drop-in of ours, and takes the stanza out of Multus' auxiliary chain. */
  private async handOver(state: NodeState, isCertain: boolean): Promise<void> {
    const { paths, owner } = this.deps;
    const isOurs = state.journal?.owner === owner;
    if (paths.auxiliary !== undefined) {
      // Who has the node by now may need it, unless he is known to have another chain.
      if (isCertain || isOurs) await this.changer.run([{ do: "remove", path: paths.auxiliary }]);
      return;
    }
    if (!isOurs) return;
    const { steps } = planInstall(state, paths, { owner, ...this.deps.wanted(), chaining: "edit" });
    await this.changer.run([...steps.chain, ...steps.rest]);
  }

  /** @param first who had the node when the removal began; one that takes it since then keeps it */
  private mayRemove({ journal }: NodeState, first: string | undefined, all: RemovalOptions["all"]): boolean {
    const { owner } = this.deps;
    const canBeOurs = () => {
      if (journal === undefined || all === undefined || journal.owner !== first) return false;
      return all(journal.owner) ?? journal.former?.includes(owner) !== true;
    };
    if (journal?.left === true || journal?.owner === owner || canBeOurs()) return true;
    this.deps.log.info(
      `nothing to remove: ${journal === undefined ? "not installed" : `${journal.owner} has the node`}`,
    );
    return false;
  }

  /** Takes a step of a removal. Tells whether it was the last one. */
  private async removed({ changes, pauseMs, warnings = [], problem }: Next): Promise<boolean> {
    const done = await this.changer.run(changes);
    if (problem !== undefined) throw new Error(problem);
    if (!done || pauseMs > 0) return false;
    for (const warning of warnings) this.deps.log.warn(warning);
    return true;
  }

  private async look(now: number): Promise<Status> {
    try {
      return await this.install(now);
    } catch (error) {
      this.deps.instruments.failures.inc();
      return { problem: reasonOf(error) };
    }
  }

  private async install(now: number): Promise<Status> {
    for (let round = 1; round <= MOST_ROUNDS; round += 1) {
      const status = await this.lookOnce(now);
      if (status !== undefined) return status;
    }
    return { problem: `${this.deps.paths.netDir} is being changed: waiting`, againInMs: BUSY_MS };
  }

  /** Nothing if it has to look again: what it saw is out of date. */
  private async lookOnce(now: number): Promise<Status | undefined> {
    const { paths, plugin, owner } = this.deps;
    const moved = movedFrom(paths);
    if (moved !== undefined) return { problem: moved };
    const state = observe(paths, plugin);
    const given = this.deps.wanted();
    const wanted: Wanted = { owner, ...given, unread: this.reads.isUnread(given.runtime, now) };
    const plan = planInstall(state, paths, wanted);
    this.kubeconfig ??= state.journal?.owner === owner ? "inherited" : "another's";
    const turn = await this.ownership.turn({ state, plan, wanted }, now);
    if (turn.is === "theirs") return this.left(turn, { state, plan, wanted });
    this.tellTaken(state);
    const againInMs = this.settleDelay.waitMs(state, plan, now);
    if (againInMs > 0) return { problem: `${paths.netDir} is being changed: waiting`, againInMs };
    const passesOver = this.deps.passesOverBroken();
    const passed = passesOver === false ? [] : plan.findings.filter(({ hidden }) => hidden === undefined);
    this.warn([
      ...passed.map(({ file, reason }) => passedOverMessage(join(paths.netDir, file), reason, passesOver)),
      ...plan.renamed.map((name) => renamedMessage(join(paths.netDir, name))),
      ...plan.neighbours.warnings,
      ...this.binDirWarnings(plan),
    ]);
    return this.take({ state, plan, wanted }, now);
  }

  private tellTaken({ journal }: NodeState): void {
    if (journal === undefined || journal.owner === this.deps.owner) return;
    this.deps.log.info(`${journal.owner} ${journal.left === true ? "has left" : "had"} the node: taking it`);
  }

  /** What is to be said about a node that another installer has. */
  private left({ owner, wrong, why, hadIt }: Extract<Turn, { readonly is: "theirs" }>, { plan }: Look): Status {
    this.kubeconfig = "another's";
    const [problem] = Object.values(wrong);
    // A node that works is as good as ours, once we had it: its new owner may still fail.
    if (hadIt && problem === undefined) return this.chainOf(plan);
    const againInMs = WAITING_MS;
    return { problem: `${owner} keeps the node: ${hadIt ? problem : why}`, againInMs };
  }

  /** Takes the steps that are due, in their order; one that is not due yet holds up those behind it. */
  private async take(look: Look, now: number): Promise<Status | undefined> {
    const { plan, wanted } = look;
    let changed = false;
    // A plugin or a kubeconfig that stays because ours does not work goes on being chained.
    let kept: Status | undefined;
    for (const step of STEPS) {
      if (step === "chain") {
        const failure = await this.chainFailure(plan);
        if (failure !== undefined) return kept ?? { problem: failure };
        // Copying the plugin takes its time, in which owners write their files.
        if (changed) return undefined;
        if (await this.reads.isRefused(look, now)) return undefined;
      }
      const outcome =
        (step === "kubeconfig" ? await this.worseKubeconfig(look) : undefined) ?? (await this.step(step, look, now));
      if (outcome === "out of date") return undefined;
      if (typeof outcome === "object" && (step === "plugin" || step === "kubeconfig")) kept ??= outcome;
      else if (typeof outcome === "object") return kept ?? outcome;
      changed ||= outcome === "changed";
      const unread = step === "chain" ? await this.reads.whyUnread(look, outcome === "changed", now) : undefined;
      if (unread !== undefined) return kept ?? { problem: unread, againInMs: WAITING_MS };
    }
    const status = this.taken(plan, wanted);
    return kept ?? status;
  }

  /** A kubeconfig that works is not replaced by one that may not. */
  private async worseKubeconfig({ state, plan }: Look): Promise<Status | undefined> {
    if (this.kubeconfig === "own" || plan.steps.kubeconfig.length === 0) return undefined;
    const problem = await this.ownership.isWorse(state, this.kubeconfig === "inherited");
    return problem === undefined ? undefined : { problem, againInMs: WAITING_MS };
  }

  /** The problem if a file keeps the runtime from reading the chain. */
  private blocked(plan: Plan): { readonly problem?: string } {
    const { paths } = this.deps;
    const blocks = this.deps.passesOverBroken() === false;
    const [problem] = plan.findings.flatMap(({ file, reason, hidden }) => {
      const path = join(paths.netDir, file);
      if (hidden !== undefined) return [hiddenMessage(path, reason, hidden)];
      return blocks ? [blockedMessage(path, reason)] : [];
    });
    return problem === undefined ? {} : { problem };
  }

  private taken(plan: Plan, wanted: Wanted): Status {
    const { paths } = this.deps;
    this.settleDelay.settled(plan);
    const blocked = this.blocked(plan);
    if (blocked.problem !== undefined) return blocked;
    if (plan.neighbours.problem !== undefined) return { problem: plan.neighbours.problem };
    if (plan.chain !== undefined || !wanted.chained) return this.chainOf(plan);
    return { problem: whyNoChain(plan, paths) };
  }

  private chainOf(plan: Plan): Status {
    const { chain, choice } = plan;
    if (chain === undefined || choice === undefined) return {};
    const [warning] = this.binDirWarnings(plan);
    return { chain, choice, ...(warning === undefined ? {} : { warning }) };
  }

  private binDirWarnings({ absentNeighbours, chain = "" }: Plan): readonly string[] {
    return absentNeighbours.length === 0 ? [] : [aloneMessage(this.deps.paths.binDir, chain, absentNeighbours)];
  }

  /** Why nothing is chained: a chain with a plugin that does not run would keep the node from starting any pod. */
  private async chainFailure(plan: Plan): Promise<string | undefined> {
    const { paths, plugin } = this.deps;
    const failure = await plugin.failure(paths.plugin, paths.image);
    if (failure !== undefined) return `${paths.plugin} does not answer VERSION: ${failure}`;
    // The node runs the others from there, whatever its mount looks like from here.
    if (plugin.isNoexec(paths.binDir) && plan.absentNeighbours.length > 0) {
      return `${paths.binDir} is mounted noexec and holds none of the other plugins of the chain: set destCNIBinDir to the directory that the container runtime reads`;
    }
    return undefined;
  }

  /** Takes one step; a status if it failed or has to wait. */
  private async step(step: Step, look: Look, now: number): Promise<Status | "nothing" | "changed" | "out of date"> {
    const { plan, wanted } = look;
    const changes = plan.steps[step];
    if (step === "kubeconfig") this.kubeconfig = "own";
    if (changes.length === 0) return "nothing";
    const attempt = step === "chain" && callsPlugin(look) ? "stanza" : step;
    const next = this.nextTry(attempt, step, plan, wanted, now);
    this.tries.set(attempt, next);
    const againInMs = waitMs(next.backoff, now);
    // A pod that starts now is chained.
    if (againInMs > 0 && attempt === "stanza" && next.failure === undefined) {
      return { ...this.blocked(plan), againInMs };
    }
    if (againInMs > 0) {
      return {
        problem: next.failure ?? `${contestedPath(changes)} is contested: waiting to change it again`,
        againInMs,
      };
    }
    const tried = { backoff: repaired(next.backoff, now), wanted: next.wanted };
    this.tries.set(attempt, tried);
    try {
      if (!(await this.changer.run(changes))) {
        this.tries.set(attempt, next);
        return "out of date";
      }
    } catch (error) {
      const failure = reasonOf(error);
      this.tries.set(attempt, { ...tried, failure });
      this.deps.instruments.failures.inc();
      return { problem: failure };
    }
    this.count(step, plan, next.backoff);
    return "changed";
  }

  /** The step's next try; the first again if the wanted content has changed, since then no other program caused it. */
  private nextTry(attempt: Attempt, step: Step, plan: Plan, wanted: Wanted, now: number): Try {
    const text = step === "kubeconfig" ? wanted.kubeconfig : `${plan.chain} ${JSON.stringify(wanted.stanza)}`;
    const last = this.tries.get(attempt);
    if (last?.wanted !== text) return { backoff: NO_BACKOFF, wanted: text };
    const backoff = undone(last.backoff, now);
    if (last.failure === undefined && backoff !== last.backoff && isContested(backoff)) {
      this.contested(plan.steps[step], backoff);
    }
    return { ...last, backoff };
  }

  private contested(changes: readonly Change[], { level, contests }: Backoff): void {
    const path = contestedPath(changes);
    const { writer, remedy } = likelyWriter(basename(path), readLoosely(path));
    this.deps.instruments.contested.inc({ file: basename(path), writer });
    const message = `${path} was changed back, probably by ${writer} (${contests} in a row): ${remedy}`;
    const lasting = contests === LASTING_FIGHT || level >= LASTING_FIGHT;
    this.deps.log[lasting ? "warn" : "info"](message);
  }

  private count(step: Step, plan: Plan, backoff: Backoff): void {
    const { instruments } = this.deps;
    instruments.installs.inc({ step });
    if (step === "chain" && backoff !== NO_BACKOFF) instruments.rechains.inc({ file: basename(plan.chain ?? "") });
  }
}

function readLoosely(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
