import type { Log } from "../../cni/log";
import type { Clock } from "../clock";
import { Naps } from "../naps";
import { decide, type Limits, retryAfter, type Step } from "./decide";
import type { Instruments } from "./instruments";
import type { Memory } from "./memory";
import { noteOpening, noteRound } from "./recollect";
import type { Roster, Ward } from "./roster";
import type { Surgery } from "./surgery";
import { deletedUnconfigured, deletedUnvalidated, suspended } from "./tidings";

interface Tools {
  readonly roster: Roster;
  readonly limits: Limits;
  readonly surgery: Surgery;
  readonly memory: Memory;
  readonly node: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly instruments: Instruments;
  /** Whether a pod that is started now will be chained. */
  readonly installerReady: () => Promise<boolean>;
  readonly signal: AbortSignal;
}

/** How long to wait for an installer that is not ready. */
const INSTALLER_PAUSE_MS = 2_000;
/** A look without a change. */
const LOOK_EVERY_MS = 30_000;

type Suspension = Extract<Step, { kind: "suspend" }>;

const ownerOf = ({ controller, name }: Ward) =>
  controller === undefined ? `Pod ${name}` : `${controller.kind} ${controller.name}`;

/** Deletes what is broken, one pod after the other, as far as the limits allow. */
export class Repairer {
  private readonly naps: Naps;
  private ready = true;

  constructor(private readonly tools: Tools) {
    this.naps = new Naps(tools.clock, tools.signal);
  }

  /** Whether the installer was ready when it was last asked. */
  get installerWasReady(): boolean {
    return this.ready;
  }

  /** Something has changed. */
  wake(): void {
    this.naps.wake();
  }

  /** Runs until the signal is given. */
  async run(): Promise<void> {
    await this.naps.run(async () => Math.min(await this.step(), LOOK_EVERY_MS));
  }

  /** Does what comes next. @returns milliseconds to wait before the step after it */
  private async step(): Promise<number> {
    const first = this.decide();
    if (first.kind === "rest") return first.ms;
    // What is broken now may be whole, or gone, by the time the installer has answered.
    if (!(await this.askInstaller())) return INSTALLER_PAUSE_MS;
    const step = await this.decideAbout(first.ward);
    if (step.kind === "rest") return step.ms;
    // Nothing is done about a pod before its own past is known.
    if (step.ward !== first.ward) return 0;
    await (step.kind === "delete" ? this.delete(step.ward) : this.suspend(step));
    return 0;
  }

  private decide(): Step {
    const { clock, limits, roster } = this.tools;
    return decide(roster.all(), limits, clock.now());
  }

  /** Decides when a pod's past is known, and before its owner is left alone also whether repairs have helped. */
  private async decideAbout(ward: Ward): Promise<Step> {
    await this.recall(ward);
    const step = this.decide();
    if (step.kind !== "suspend" || step.ward !== ward) return step;
    return (await this.haveHelped(step)) ? this.decide() : step;
  }

  /** Learns what became of the owner's other pods, on other nodes and before this process started. */
  private async recall(ward: Ward): Promise<void> {
    const { limits, memory } = this.tools;
    const past = await memory.recall(ward);
    if (past !== undefined) limits.breakers.recall(ward.owner, past, this.moment(ward));
  }

  /** Whether rounds that look vain have helped: then they do not count. */
  private async haveHelped(step: Suspension): Promise<boolean> {
    const { limits, memory } = this.tools;
    const { ward } = step;
    const past = await memory.reconsider(ward, step);
    if (past !== undefined) limits.breakers.correct(ward.owner, past, this.moment(ward));
    return past !== undefined;
  }

  private moment({ firstSeen }: Ward) {
    const { clock } = this.tools;
    return { firstSeen, now: clock.now(), date: clock.date().getTime() };
  }

  private async delete(ward: Ward): Promise<void> {
    const { clock, limits, log, node, surgery } = this.tools;
    const tiding = ward.diagnosis === "failed" ? deletedUnconfigured : deletedUnvalidated;
    const start = clock.now();
    limits.bucket.take(start);
    const outcome = await surgery.delete(ward);
    // A pod whose deletion got no answer may come back as well.
    const isRound = outcome === "deleted" || outcome === "failed";
    const round = isRound ? limits.breakers.deleting(ward.owner, ward.firstSeen, start) : 0;
    if (outcome !== "deleted") {
      // One that is gone stays known until the watch tells: forgotten now, it would seem to come back.
      ward.attempts += 1;
      ward.retryAt = clock.now() + retryAfter(ward.attempts);
      return;
    }
    ward.deleted = true;
    log.info(`deleted pod ${ward.namespace}/${ward.name} (${tiding.reason}): ${tiding.note}`);
    await surgery.publish(ward, { ...tiding, annotations: noteRound(round, node) });
  }

  private async suspend({ ward, rounds, helped, openings, waitMs }: Suspension): Promise<void> {
    const { clock, instruments, limits, log, node, surgery } = this.tools;
    const tiding = suspended(rounds - helped, waitMs, ownerOf(ward));
    limits.breakers.open(ward.owner, clock.now());
    instruments.breakerOpened.inc();
    log.warn(`pod ${ward.namespace}/${ward.name} (${tiding.reason}): ${tiding.note}`);
    const until = new Date(clock.date().getTime() + waitMs);
    await surgery.publish(ward, { ...tiding, annotations: noteOpening(rounds, node, openings, until) });
  }

  private async askInstaller(): Promise<boolean> {
    const { installerReady, log } = this.tools;
    const ready = await installerReady();
    if (ready !== this.ready) {
      if (ready) log.info("the node's installer is ready: pods are repaired");
      else log.warn("the node's installer is not ready: no pod is deleted before it is");
    }
    this.ready = ready;
    return ready;
  }
}
