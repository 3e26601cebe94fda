import { CHAINED_NOTE } from "../../cni/contract";
import { reasonOf } from "../../cni/errors";
import { PLUGIN_TYPE } from "../../cni/stanza";
import { Backoff, type BackoffPolicy } from "../../kubernetes/backoff";
import type { Log } from "../../process/log";
import { apart } from "../../system/child";
import { basename, join } from "../../system/path";
import type { Verdict } from "../api/api-connection";
import { Changer } from "../apply/changer";
import type { Disk } from "../apply/disk";
import type { Choice } from "../plan/chaining";
import type { Change } from "../plan/change";
import { type Plan, planInstall, planLeaving, STEPS, type Step, type Wanted } from "../plan/plan";
import { type Attachments, leftMessage, type Next, Removal } from "../plan/removal";
import { compareDirectories } from "../state/directories";
import type { NodeState } from "../state/node-state";
import { observe } from "../state/observe";
import type { Paths } from "../state/paths";
import { failureOf, type PluginFile } from "../state/plugin-file";
import type { Instruments } from "../telemetry/instruments";
import { callsPlugin, type Look, Ownership, type Turn, whyNoChain } from "./ownership";
import { RuntimeReads } from "./runtime-reads";
import { SettleDelay } from "./settle-delay";

/** The state of the node after a run. */
export interface Status {
  /** Absolute path of the file with our stanza; absent if no stanza is wanted. */
  readonly chain?: string | undefined;
  /** How pods are chained, and why. */
  readonly choice?: Choice | undefined;
  /** Why a pod that starts now is not chained, or lacks the plugin. */
  readonly problem?: string | undefined;
  /** When the next run is due at the latest. */
  readonly againInMs?: number;
}

export interface ReconcilerDeps {
  readonly paths: Paths;
  /** The identity of this installer. */
  readonly owner: string;
  /** The wanted state, read in each run, since it changes. @throws if it cannot be determined */
  readonly wanted: () => Omit<Wanted, "owner" | "unread" | "keepsPlugin">;
  readonly disk: Disk;
  readonly plugin: PluginFile;
  /** Whether the API server accepts this pod's token. */
  readonly accepts: () => Promise<Verdict>;
  /** Whether an installer listens for look-ups. */
  readonly isServed: () => Promise<boolean>;
  /** Whether the node's runtime skips a configuration that it cannot load; undefined if unknown. */
  readonly passesOverBroken: () => boolean | undefined;
  readonly log: Log;
  readonly instruments: Instruments;
  readonly sleep: (ms: number) => Promise<unknown>;
}

interface RemovalOptions {
  /** Keeps the plugin when everything else is removed. */
  readonly keepPlugin: boolean;
  /**
   * Also removes if another installer, which may have been killed, has the node. Returns whether that installer is a
   * pod of our DaemonSet; undefined if unknown: then it keeps the node.
   */
  readonly all?: (owner: string) => boolean | undefined;
  readonly attachments?: Attachments;
}

/** Interval at which an installer that waits for the node looks at it. */
const WAITING_MS = 1_000;

/** Maximum restarts of a run because others have changed files meanwhile. */
const MOST_ROUNDS = 5;
const BUSY_MS = 100;

/**
 * Pauses between repairs that another program undoes within {@link LASTING_MS}; the first repair is immediate. An owner
 * that writes its file every few seconds is followed each time, and one that writes it many times a second is not.
 */
const UNDONE: BackoffPolicy = { firstMs: 125, longestMs: 30_000 };
const LASTING_MS = 2_000;
/** A repair that is undone within this time is contested. */
const CONTEST_MS = 10_000;
/** Number of undone repairs in a row from which each one causes a warning. */
const LASTING_FIGHT = 3;

/**
 * What is retried: a step, or replacing another installer's stanza in a chain that already calls our plugin. The
 * back-off of the latter is separate: linkerd's installer restores its stanza while it runs and removes the chain when
 * it ends, and the step that then chains again must not wait.
 */
type Attempt = Step | "stanza";

/** The tries of a step. */
interface Tries {
  /** The wanted content. */
  readonly wanted: string;
  /** Counts the repairs in a row that were undone at once. */
  readonly backoff: Backoff;
  /** Number of repairs in a row that were contested. */
  contests: number;
  /** Time of the last try; undefined if there is none, or if its result has been undone. */
  lastAt?: number | undefined;
  /** Earliest time of the next try. */
  dueAt: number;
  /** The failure of the last try. */
  failure?: string | undefined;
  /** Whether there was a try before. */
  isRepair: boolean;
}

/** Of the changed files, the one that others write: a file that is set aside has its owner's name. */
function contestedPath(changes: readonly Change[]): string {
  const last = changes.at(-1);
  return (last?.do === "aside" ? last.from : last?.path) ?? "";
}

/** The result of a step, or of all: done, out of date (then the node is observed again), or why it is not done. */
type Outcome = "done" | "out of date" | Status;

function hiddenMessage(path: string, reason: string, remedy: string): string {
  return `${path} ${reason}: it comes first, so the installer cannot tell which configuration the node uses; ${remedy}`;
}

const BLOCKS = "containerd does not use the files after it, and keeps the node NotReady while it cannot load it";
const REMEDY = "correct the file or move it out of the directory";

/** A broken file comes first, and the runtime does not skip it. */
function blockedMessage(path: string, reason: string): string {
  return `${path} ${reason}: it comes first; ${BLOCKS}: ${REMEDY}`;
}

/** A broken file comes before the configuration in force. */
function passedOverMessage(path: string, reason: string, passesOver: boolean | undefined): string {
  return `${path} ${reason}: skipped${passesOver === undefined ? ` by CRI-O; ${BLOCKS}: ${REMEDY}` : ""}`;
}

/** Another installer has started on this node. */
function replacedMessage(path: string): string {
  return `${path} was replaced by another plugin that works, so it stays: another installer, such as linkerd's, has started on this node; restart this pod to install ours again`;
}

/** Pods are chained: where, how, and why. */
function chainedMessage(path: string, { way, why }: Choice): string {
  const what = way === "edit" ? "ends in our stanza" : "holds our stanza";
  return `${path} ${what}: ${CHAINED_NOTE} (${way}: ${why})`;
}

/** Logs a message when it is new, not at every look. */
function sayOnce(say: (message: string) => void): (messages: readonly string[]) => void {
  let said: ReadonlySet<string> = new Set();
  return (messages) => {
    for (const message of messages) if (!said.has(message)) say(message);
    said = new Set(messages);
  };
}

/** Brings a node into the wanted state, keeps it there, and restores it. */
export class Reconciler {
  private readonly warn: (messages: readonly string[]) => void;
  private readonly complain: (messages: readonly string[]) => void;
  private readonly announce: (messages: readonly string[]) => void;
  private readonly tries = new Map<Attempt, Tries>();
  private readonly changer: Changer;
  private readonly settleDelay = new SettleDelay();
  private readonly ownership: Ownership;
  private readonly reads: RuntimeReads;
  private owns = false;
  /** The plugin was in place during an earlier look, and the node has been ours since. */
  private hadPlugin = false;

  constructor(private readonly deps: ReconcilerDeps) {
    this.changer = new Changer(deps);
    this.ownership = new Ownership({ ...deps, stage: () => this.changer.stage() });
    this.warn = sayOnce(deps.log.warn);
    this.complain = sayOnce(deps.log.error);
    this.announce = sayOnce(deps.log.info);
    this.reads = new RuntimeReads((folder) => this.changer.isRead(folder));
  }

  /** Whether this installer has the node, as of the last look. */
  get isOwner(): boolean {
    return this.owns;
  }

  /**
   * Copies the plugin to the node under a temporary name, unless it is there, and runs it: what the first run would have
   * to wait for. The first run reports what is wrong with it.
   */
  async prepare(): Promise<void> {
    try {
      if (compareDirectories(this.deps.paths).problem === undefined) await this.changer.stage();
    } catch {
      // Reported by the first run.
    }
  }

  /**
   * Observes the node and applies the necessary changes. Never throws. `now` is in milliseconds of a monotonic clock.
   */
  async reconcile(now: number): Promise<Status> {
    const status = await this.untilCurrent(now).catch((error) => {
      this.deps.instruments.failures.inc();
      return { problem: reasonOf(error) } as Status;
    });
    this.complain(status.problem === undefined ? [] : [status.problem]);
    const { chain, choice } = status;
    this.announce(chain === undefined || choice === undefined ? [] : [chainedMessage(chain, choice)]);
    return status;
  }

  /**
   * Restores the node, unless another installer has it. @throws if a configuration still calls the plugin, which then
   * stays with everything it needs
   */
  async remove({ keepPlugin, all, attachments }: RemovalOptions): Promise<void> {
    const { paths, plugin, sleep } = this.deps;
    const removal = new Removal(paths, keepPlugin, attachments);
    await this.changer.staged();
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

  /** Leaves everything in place for the current or next installer. */
  async leave(): Promise<void> {
    const { paths, plugin, owner } = this.deps;
    await this.changer.staged();
    const state = observe(paths, plugin);
    if (state.journal?.owner === owner) await this.changer.run(planLeaving(state, paths));
    else await this.changer.unstage();
  }

  /** @param first the installer that had the node when the removal began; one that takes it later keeps it */
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

  /** Takes a step of a removal. Returns whether it was the last one. */
  private async removed({ changes, pauseMs, warnings = [], problem }: Next): Promise<boolean> {
    const done = await this.changer.run(changes);
    if (problem !== undefined) throw new Error(problem);
    if (!done || pauseMs > 0) return false;
    for (const warning of warnings) this.deps.log.warn(warning);
    return true;
  }

  private async untilCurrent(now: number): Promise<Status> {
    for (let round = 1; round <= MOST_ROUNDS; round += 1) {
      const outcome = await this.look(now);
      if (typeof outcome === "object") return outcome;
    }
    return { problem: `${this.deps.paths.netDir} is being changed: waiting`, againInMs: BUSY_MS };
  }

  /** Observes the node, plans its changes, and applies them if the node is ours. */
  private async look(now: number): Promise<Outcome> {
    const { paths, plugin, owner } = this.deps;
    const state = observe(paths, plugin);
    if (state.directories.problem !== undefined) return { problem: state.directories.problem };
    const given = this.deps.wanted();
    const keepsPlugin = await this.isReplaced(state);
    const wanted: Wanted = { owner, ...given, keepsPlugin, unread: this.reads.isUnread(given.runtime, now) };
    const look = { state, plan: planInstall(state, paths, wanted), wanted };
    const turn = await this.ownership.turn(look, now);
    const { journal } = state;
    // Until the journal says so, another installer may have it, which then serves.
    this.owns = turn.is === "ours" && (journal === undefined || journal.left === true || journal.owner === owner);
    if (turn.is === "theirs") return this.left(turn, look);
    this.tellTaken(state);
    const againInMs = this.settleDelay.waitMs(state, look.plan, now);
    if (againInMs > 0) return { problem: `${paths.netDir} is being changed: waiting`, againInMs };
    this.warnOf(look);
    return this.apply(look, now);
  }

  private warnOf({ state, plan, wanted }: Look): void {
    const { paths } = this.deps;
    const passesOver = this.deps.passesOverBroken();
    const passed = passesOver === false ? [] : plan.findings.filter(({ hidden }) => hidden === undefined);
    this.warn([
      ...passed.map(({ file, reason }) => passedOverMessage(join(paths.netDir, file), reason, passesOver)),
      ...plan.neighbours.warnings,
      ...state.hiddenAuxiliary.map(leftMessage),
      ...(wanted.keepsPlugin === true ? [replacedMessage(paths.plugins[0] ?? "")] : []),
    ]);
  }

  /**
   * Whether another program has put a plugin that works in place of ours while the node was ours. linkerd's installer
   * does so when it starts, after a `kubectl rollout undo` to its chart: it would not put it back if we replaced it, and
   * ours asks an installer that is about to end.
   */
  private async isReplaced({ outdated, executables }: NodeState): Promise<boolean> {
    const { paths, plugin } = this.deps;
    const [path = ""] = paths.plugins;
    const isOutdated = outdated.includes(path);
    this.hadPlugin = this.owns && (this.hadPlugin || !isOutdated);
    if (!this.hadPlugin || !isOutdated || !executables.includes(PLUGIN_TYPE)) return false;
    return (await plugin.failure(path, paths.image)) === undefined;
  }

  private tellTaken({ journal }: NodeState): void {
    if (journal === undefined || journal.owner === this.deps.owner) return;
    this.deps.log.info(`${journal.owner} ${journal.left === true ? "has left" : "had"} the node: taking it`);
  }

  /** The status of a node that another installer has. */
  private left({ owner, wrong, why, hadIt }: Extract<Turn, { readonly is: "theirs" }>, { plan }: Look): Status {
    const [problem] = Object.values(wrong);
    // A working node that we had counts as ready: its new installer may still fail.
    if (hadIt && problem === undefined) return this.chainOf(plan);
    const againInMs = WAITING_MS;
    return { problem: `${owner} keeps the node: ${hadIt ? problem : why}`, againInMs };
  }

  /** Takes the steps in order; one that is not done yet delays the later ones. */
  private async apply(look: Look, now: number): Promise<Outcome> {
    let failed: Status | undefined;
    let changed = false;
    for (const step of STEPS) {
      const outcome = step === "chain" ? await this.chain(look, changed, now) : await this.step(step, look, now);
      if (outcome === "out of date") return outcome;
      if (outcome === "done") {
        changed ||= look.plan.steps[step].length > 0;
        continue;
      }
      failed ??= outcome;
      // A plugin that stays because ours does not work remains chained.
      if (step !== "plugin") return failed;
    }
    const status = this.taken(look);
    return failed ?? status;
  }

  /** Takes the step of the chain, if the plugin runs and the runtime reads the chain. */
  private async chain(look: Look, changed: boolean, now: number): Promise<Outcome> {
    const { paths, plugin } = this.deps;
    // A chain with a plugin that does not run would keep the node from starting pods.
    const failure = await failureOf(paths, plugin, look.plan.choice?.way);
    if (failure !== undefined) return { problem: failure };
    // Owners may write their files while the plugin is copied.
    if (changed || (await this.reads.isRefused(look, now))) return "out of date";
    const outcome = await this.step("chain", look, now);
    if (outcome !== "done") return outcome;
    const problem = await this.reads.whyUnread(look, look.plan.steps.chain.length > 0, now);
    return problem === undefined ? outcome : { problem, againInMs: WAITING_MS };
  }

  /** The problem of a file that keeps the runtime from reading the chain. */
  private blocked(plan: Plan): string | undefined {
    const { paths } = this.deps;
    const blocks = this.deps.passesOverBroken() === false;
    const [problem] = plan.findings.flatMap(({ file, reason, hidden }) => {
      const path = join(paths.netDir, file);
      if (hidden !== undefined) return [hiddenMessage(path, reason, hidden)];
      return blocks ? [blockedMessage(path, reason)] : [];
    });
    return problem;
  }

  private taken({ plan, wanted }: Look): Status {
    const { paths } = this.deps;
    this.settleDelay.settled(plan);
    const problem = this.blocked(plan) ?? plan.neighbours.problem;
    if (problem !== undefined) return { problem };
    if (plan.chain !== undefined || !wanted.chained) return this.chainOf(plan);
    return { problem: whyNoChain(plan, paths) };
  }

  private chainOf(plan: Plan): Status {
    const { chain, choice } = plan;
    if (chain === undefined || choice === undefined) return {};
    return { chain, choice };
  }

  /** Takes one step, if it is due. */
  private async step(step: Step, look: Look, now: number): Promise<Outcome> {
    const { plan } = look;
    const changes = plan.steps[step];
    if (changes.length === 0) return "done";
    const attempt = step === "chain" && callsPlugin(look) ? "stanza" : step;
    const tries = this.triesOf(attempt, look, now);
    const path = contestedPath(changes);
    const isShared = step !== "chain" || plan.choice?.way === "edit";
    if (this.noteUndone(tries, now) && isShared && tries.failure === undefined) this.reportContest(path, tries);
    if (now < tries.dueAt) {
      const againInMs = tries.dueAt - now;
      // A pod that starts now is chained.
      if (attempt === "stanza" && tries.failure === undefined) return { problem: this.blocked(plan), againInMs };
      return { problem: tries.failure ?? `${path} is contested: waiting to change it again`, againInMs };
    }
    try {
      // An installer that was killed may have put the plugin in place without syncing its directory.
      if (step === "chain") await apart(() => this.deps.disk.settle(this.deps.paths.binDir));
      if (!(await this.changer.run(changes))) return "out of date";
      tries.failure = undefined;
      this.count(step, plan, tries.isRepair);
    } catch (error) {
      tries.failure = reasonOf(error);
      this.deps.instruments.failures.inc();
    }
    tries.lastAt = now;
    tries.isRepair = true;
    return tries.failure === undefined ? "done" : { problem: tries.failure };
  }

  /** The tries of a step: none if the wanted content has changed, since then no other program caused the step. */
  private triesOf(attempt: Attempt, { plan, wanted }: Look, now: number): Tries {
    const text = `${plan.chain} ${JSON.stringify(wanted.stanza)}`;
    const last = this.tries.get(attempt);
    if (last?.wanted === text) return last;
    const first = { wanted: text, backoff: new Backoff(UNDONE, () => 1), contests: 0, dueAt: now, isRepair: false };
    this.tries.set(attempt, first);
    return first;
  }

  /** Delays the next try if the result of the last one was undone at once. Returns whether another program contests it. */
  private noteUndone(tries: Tries, now: number): boolean {
    const { backoff, lastAt } = tries;
    if (lastAt === undefined) return false;
    const lastedMs = now - lastAt;
    if (lastedMs >= LASTING_MS) backoff.reset();
    else {
      const pauseMs = backoff.next();
      if (backoff.failures > 1) tries.dueAt = lastAt + pauseMs;
    }
    tries.lastAt = undefined;
    tries.contests = lastedMs < CONTEST_MS ? tries.contests + 1 : 0;
    return tries.contests > 0;
  }

  /** Reports that another program keeps undoing our changes of a file. */
  private reportContest(path: string, { backoff, contests }: Tries): void {
    const { log, instruments } = this.deps;
    instruments.contested.inc({ file: basename(path) });
    const isLasting = contests === LASTING_FIGHT || backoff.failures >= LASTING_FIGHT;
    log[isLasting ? "warn" : "info"](`another program changed ${path} back (${contests} in a row)`);
  }

  private count(step: Step, plan: Plan, isRepair: boolean): void {
    const { instruments } = this.deps;
    instruments.installs.inc({ step });
    if (step === "chain" && isRepair) instruments.rechains.inc({ file: basename(plan.chain ?? "") });
  }
}
