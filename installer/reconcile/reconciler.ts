import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { readConfig } from "../../cni/conflist/read";
import { reasonOf } from "../../cni/errors";
import { PLUGIN_TYPE } from "../../cni/stanza";
import type { Log } from "../../process/log";
import { Changer } from "../apply/changer";
import type { Disk } from "../apply/disk";
import type { Change } from "../plan/change";
import { type Plan, planInstall, planLeaving, STEPS, type Step, type Wanted } from "../plan/plan";
import { type Attachments, type Next, Removal } from "../plan/removal";
import { isEarlier } from "../state/journal";
import type { NodeState } from "../state/node-state";
import { observe } from "../state/observe";
import type { Paths } from "../state/paths";
import type { PluginFile } from "../state/plugin-file";
import type { Instruments } from "../telemetry/instruments";
import { type Backoff, isContested, PEACE, repaired, undone, waitMs } from "./backoff";
import {
  aloneMessage,
  blockedMessage,
  hiddenMessage,
  movedMessage,
  passedOverMessage,
  refusedMoveMessage,
  renamedMessage,
  sayOnce,
} from "./messages";
import { SettleDelay } from "./settle-delay";
import { likelyWriter } from "./writers";

/** What the node looks like after a look at it. */
export interface Status {
  /** Absolute path of the file that holds the chain; absent where none is wanted. */
  readonly chain?: string;
  /** Why a pod that starts now is not chained, or the plugin is not there for it. */
  readonly problem?: string;
  /** What may keep pods from starting, although nothing says that it does. */
  readonly warning?: string;
  /** When the next look is due, whatever happens. */
  readonly againInMs?: number;
}

export interface Deps {
  readonly paths: Paths;
  /** This process among all installers that this node has had and has. */
  readonly owner: string;
  /** What is to be installed. Asked at each look, since it changes. @throws where it cannot be told */
  readonly wanted: () => Omit<Wanted, "owner">;
  readonly disk: Disk;
  readonly plugin: PluginFile;
  /** Whether the node's runtime passes over a configuration that it cannot load; undefined where nobody knows. */
  readonly passesOverBroken: () => boolean | undefined;
  readonly log: Log;
  readonly instruments: Instruments;
  readonly sleep: (ms: number) => Promise<unknown>;
}

/** Time after which an installer that made way for another takes over where the other left the node unchained. */
const SUCCESSOR_SILENT_MS = 10_000;

/** How often a look begins anew because others have just changed what it saw. */
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

/** The file that others write, of those that the changes are about: what is set aside has its owner's name. */
function contestedPath(changes: readonly Change[]): string {
  const last = changes.at(-1);
  return (last?.do === "rename" ? last.from : last?.path) ?? "";
}

/** Whether the configuration in force ends in our plugin, by whatever stanza. */
function callsPlugin(state: NodeState, plan: Plan): boolean {
  // An owner who writes a single plugin's file again puts it in front of the list that was made of it.
  const inForce = state.configs.some(({ name }) => name === plan.active) ? plan.active : plan.chain;
  const file = state.configs.find(({ name }) => name === inForce);
  const config = file?.bytes === undefined ? undefined : readConfig(file.name, file.bytes);
  return config?.kind === "list" && config.types.at(-1) === PLUGIN_TYPE;
}

/** Whether everything is in place, in whatever version. */
function isWhole(state: NodeState, plan: Plan, { chained }: Wanted): boolean {
  return (callsPlugin(state, plan) || !chained) && state.plugin.is !== "missing" && state.kubeconfig !== undefined;
}

/** Brings one node into the wanted state, keeps it there, and puts it back. */
export class Reconciler {
  private readonly warn: (messages: readonly string[]) => void;
  private readonly complain: (messages: readonly string[]) => void;
  private readonly announce: (messages: readonly string[]) => void;
  private readonly tries = new Map<Attempt, Try>();
  private readonly changer: Changer;
  private readonly settleDelay = new SettleDelay();
  private installed = false;
  /** Another installer, which may still run, had the node before. */
  private hasPredecessor = false;
  private unchainedSince: number | undefined;

  constructor(private readonly deps: Deps) {
    this.changer = new Changer(deps);
    this.warn = sayOnce(deps.log.warn);
    this.complain = sayOnce(deps.log.error);
    this.announce = sayOnce((path) =>
      deps.log.info(`${path} ends in our stanza: pods that start from now on are chained`),
    );
  }

  /** Looks, and changes what has to be changed. Never throws. `now` is in milliseconds, on any clock. */
  async reconcile(now: number): Promise<Status> {
    const status = await this.look(now);
    this.complain(status.problem === undefined ? [] : [status.problem]);
    this.announce(status.chain === undefined ? [] : [status.chain]);
    return status;
  }

  /**
   * Puts the node back as it was, unless another installer has taken it over.
   * @throws where a configuration goes on calling the plugin: then that stays, with all that it needs
   */
  async remove(keepPlugin: boolean, attachments?: Attachments): Promise<void> {
    const { paths, plugin, sleep } = this.deps;
    const removal = new Removal(paths, keepPlugin, attachments);
    for (;;) {
      const state = observe(paths, plugin);
      if (!this.mayRemove(state)) return;
      const next = removal.next(state);
      if (await this.removed(next)) return;
      await sleep(Math.max(next.pauseMs, BUSY_MS));
    }
  }

  /**
   * Leaves everything in place. An installer before us that still runs goes on, as after the rollback of a rollout in which
   * our pod did not become ready: it would wait for us for ever, and let the plugin's token expire.
   */
  async leave(): Promise<void> {
    const { paths, plugin, owner } = this.deps;
    const state = observe(paths, plugin);
    if (this.hasPredecessor && state.journal?.owner === owner) await this.changer.run(planLeaving(state, paths));
  }

  /**
   * Leaves the plugin directory to the installer that comes after us with another one. A container runtime finds a plugin
   * at all times: where the other installer has put its own in place, ours becomes a link to it, in case the runtime
   * searches our directory alone.
   * @param binDir the other directory, as a path on the node
   */
  async leaveBinDir(binDir: string, keepPlugin: boolean): Promise<void> {
    const { paths, plugin, log, owner } = this.deps;
    const state = observe(paths, plugin);
    const { journal } = state;
    if (journal === undefined) return;
    if (this.answersFor(journal.owner)) {
      const { absentNeighbours, formerBinDir } = planInstall(state, paths, { owner, ...this.deps.wanted() });
      // A directory that was refused is not the one in which the runtime finds the plugin.
      if (absentNeighbours.length === 0 || formerBinDir !== undefined) return this.leave();
      // The runtime found no plugin in our directory, and the pod with the other one could not even start.
      log.info(`${paths.binDir} holds none of the other plugins: removing what was installed`);
      return this.remove(keepPlugin);
    }
    const target = join(binDir, PLUGIN_TYPE);
    // Two paths may lead to one directory: there the link would lead to itself.
    const isApart = journal.binDirId !== undefined && journal.binDirId !== state.binDirId;
    if (journal.binDir === binDir && isApart) await this.changer.run([{ do: "link", path: paths.plugin, target }]);
  }

  private mayRemove({ journal }: NodeState): boolean {
    const last = journal?.owner;
    if (last !== undefined && (journal?.left === true || this.answersFor(last))) return true;
    const why = last === undefined ? "not installed" : `${last} installed last`;
    this.deps.log.info(`nothing to remove: ${why}`);
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

  /** Whether what an installer put in place is ours to remove: that of one before us, too, until we have installed. */
  private answersFor(last: string): boolean {
    const { owner } = this.deps;
    return last === owner || (!this.installed && isEarlier(last, owner));
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

  /** Nothing where it has to look again: what it saw is out of date. */
  private async lookOnce(now: number): Promise<Status | undefined> {
    const { paths, plugin, owner } = this.deps;
    const state = observe(paths, plugin);
    this.hasPredecessor ||= state.journal !== undefined && state.journal.owner !== owner;
    const wanted: Wanted = { owner, ...this.deps.wanted() };
    const plan = planInstall(state, paths, wanted);
    const successor = this.successor(state, isWhole(state, plan, wanted), now);
    if (successor !== undefined) return { problem: `${successor} has installed since: leaving the node to it` };
    const againInMs = this.settleDelay.waitMs(state, plan, now);
    if (againInMs > 0) return { problem: `${paths.netDir} is being changed: waiting`, againInMs };
    const passesOver = this.deps.passesOverBroken();
    const passed = passesOver === false ? [] : plan.findings.filter(({ hidden }) => hidden === undefined);
    this.warn([
      ...passed.map(({ file, reason }) => passedOverMessage(join(paths.netDir, file), reason, passesOver)),
      ...plan.renamed.map((name) => renamedMessage(join(paths.netDir, name))),
      ...this.binDirWarnings(plan),
    ]);
    return this.take(plan, wanted, now, callsPlugin(state, plan));
  }

  /** Another installer that came after us and keeps the node chained. */
  private successor(state: NodeState, whole: boolean, now: number): string | undefined {
    const other = state.journal?.owner;
    if (!this.installed || other === undefined || other === this.deps.owner) return undefined;
    if (state.journal?.left === true) {
      this.deps.log.info(`${other} has stopped: taking over again`);
      this.installed = false;
      this.unchainedSince = undefined;
      return undefined;
    }
    this.unchainedSince = whole ? undefined : (this.unchainedSince ?? now);
    if (this.unchainedSince === undefined || now - this.unchainedSince < SUCCESSOR_SILENT_MS) return other;
    this.deps.log.warn(`${other} leaves the node unchained: taking over again`);
    this.installed = false;
    this.unchainedSince = undefined;
    return undefined;
  }

  /** Takes the steps that are due, in their order; one that is not due yet holds up those behind it. */
  private async take(plan: Plan, wanted: Wanted, now: number, isCalled: boolean): Promise<Status | undefined> {
    let changed = false;
    for (const step of STEPS) {
      if (step === "chain") {
        await this.requirePlugin(plan);
        // Copying the plugin takes its time, in which owners write their files.
        if (changed) return undefined;
      }
      const outcome = await this.step(step, plan, wanted, now, isCalled);
      // A plugin that stays goes on needing a token that is accepted.
      if (step === "plugin" && typeof outcome === "object") await this.step("kubeconfig", plan, wanted, now, isCalled);
      if (outcome === "out of date") return undefined;
      if (typeof outcome === "object") return outcome;
      changed ||= outcome === "changed";
    }
    return this.taken(plan, wanted);
  }

  /** What keeps the runtime from the chain, however it ends. */
  private hindrance(plan: Plan): { readonly problem?: string } {
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
    this.installed = true;
    this.settleDelay.settled(plan);
    const hindrance = this.hindrance(plan);
    if (hindrance.problem !== undefined) return hindrance;
    const refused = this.refusedMove(plan);
    if (refused !== undefined) return { problem: refused };
    const [warning] = this.binDirWarnings(plan);
    if (plan.chain !== undefined) {
      return { chain: join(paths.netDir, plan.chain), ...(warning === undefined ? {} : { warning }) };
    }
    if (!wanted.chained) return {};
    return { problem: `no valid CNI configuration in ${paths.netDir} yet: install a primary CNI` };
  }

  private binDirWarnings({ absentNeighbours, chain = "", formerBinDir }: Plan): readonly string[] {
    const { binDir, netDir, onNode } = this.deps.paths;
    if (absentNeighbours.length > 0) {
      return formerBinDir === undefined ? [aloneMessage(binDir, join(netDir, chain), absentNeighbours)] : [];
    }
    return formerBinDir === undefined ? [] : [movedMessage(formerBinDir, onNode.binDir)];
  }

  /** Why another plugin directory than before is not taken; undefined where it is. */
  private refusedMove({ absentNeighbours, chain = "", formerBinDir }: Plan): string | undefined {
    if (absentNeighbours.length === 0 || formerBinDir === undefined) return undefined;
    const { netDir, onNode } = this.deps.paths;
    return refusedMoveMessage(formerBinDir, onNode.binDir, join(netDir, chain), absentNeighbours);
  }

  /** A chain with a plugin that does not run would keep the node from starting any pod. */
  private async requirePlugin(plan: Plan): Promise<void> {
    const { paths, plugin } = this.deps;
    const failure = await plugin.failure(paths.plugin, paths.image);
    if (failure !== undefined) throw new Error(`${paths.plugin} does not answer VERSION: ${failure}`);
    // The node runs the others from there, whatever its mount looks like from here.
    if (plugin.isNoexec(paths.binDir) && plan.absentNeighbours.length > 0) {
      throw new Error(
        `${paths.binDir} is mounted noexec and holds none of the other plugins of the chain: set destCNIBinDir to the directory that the container runtime reads`,
      );
    }
  }

  /** Takes one step; a status where it failed or has to wait. */
  private async step(
    step: Step,
    plan: Plan,
    wanted: Wanted,
    now: number,
    isCalled: boolean,
  ): Promise<Status | "nothing" | "changed" | "out of date"> {
    const changes = plan.steps[step];
    if (changes.length === 0) return "nothing";
    const attempt = step === "chain" && isCalled ? "stanza" : step;
    const next = this.nextTry(attempt, step, plan, wanted, now);
    this.tries.set(attempt, next);
    const againInMs = waitMs(next.backoff, now);
    // A pod that starts now is chained.
    if (againInMs > 0 && attempt === "stanza" && next.failure === undefined) {
      return { ...this.hindrance(plan), againInMs };
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

  /** The step's next try; a first one where what is wanted has changed, since then nobody else is to blame. */
  private nextTry(attempt: Attempt, step: Step, plan: Plan, wanted: Wanted, now: number): Try {
    const text = step === "kubeconfig" ? wanted.kubeconfig : `${plan.chain} ${JSON.stringify(wanted.stanza)}`;
    const last = this.tries.get(attempt);
    if (last?.wanted !== text) return { backoff: PEACE, wanted: text };
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
    if (step === "chain" && backoff !== PEACE) instruments.rechains.inc({ file: plan.chain ?? "" });
  }
}

function readLoosely(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
