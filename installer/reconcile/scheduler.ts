import type { Clock } from "../../process/clock";
import type { Log } from "../../process/log";
import { Loop } from "../../process/loop";
import type { Mounts } from "../state/mounts";
import type { Reconciler, Status } from "./reconciler";
import { Watcher } from "./watch";

/** For changes without an event, such as a replaced directory. */
const RESYNC_MS = 10_000;
/** The same if the kernel refuses a watch. */
const POLL_MS = 1_000;
const LIVE_WITHIN_MS = 60_000;

interface SchedulerDeps {
  readonly reconciler: Pick<Reconciler, "reconcile">;
  readonly mounts: Pick<Mounts, "check">;
  /** Directories to watch. */
  readonly watched: () => readonly string[];
  /** Called after each run. */
  readonly reconciled: () => void;
  readonly log: Log;
  readonly clock: Pick<Clock, "now" | "sleep">;
  /** Ends the schedule after the current run. */
  readonly signal: AbortSignal;
}

/** Reconciles the node on changes, and periodically. */
export class Scheduler {
  private last: Status = { problem: "starting" };
  private readonly watcher: Watcher;
  private readonly loop: Loop;
  private busy = false;
  private doneAt: number;
  private unwatched = "";

  constructor(private readonly deps: SchedulerDeps) {
    this.doneAt = deps.clock.now();
    this.loop = new Loop(() => this.reconcile(), deps);
    this.watcher = new Watcher(deps.watched, () => this.loop.wake());
    deps.signal.addEventListener("abort", () => this.watcher.close());
  }

  /** The result of the last run. */
  get status(): Status {
    return this.last;
  }

  /** A run that waits for a slow disk counts as live: a new container would also have to wait. */
  get isLive(): boolean {
    return this.busy || this.deps.clock.now() - this.doneAt < LIVE_WITHIN_MS;
  }

  /** Reconciles until the signal is given. @throws if only another container can go on, see {@link Mounts} */
  run(): Promise<void> {
    return this.loop.run();
  }

  /** Reconciles as soon as possible. */
  wake(): void {
    this.loop.wake();
  }

  private async reconcile(): Promise<number> {
    const { clock, mounts, reconciler, reconciled } = this.deps;
    this.busy = true;
    try {
      mounts.check();
      const refused = this.watcher.arm();
      this.sayUnwatched(refused);
      this.last = await reconciler.reconcile(clock.now());
      reconciled();
      const pause = refused.size > 0 ? POLL_MS : RESYNC_MS;
      return Math.min(this.last.againInMs ?? pause, pause);
    } finally {
      this.busy = false;
      this.doneAt = clock.now();
    }
  }

  private sayUnwatched(refused: ReadonlyMap<string, string>): void {
    const text = [...refused].map(([directory, reason]) => `${directory} (${reason})`).join(", ");
    if (text !== this.unwatched && text !== "") {
      this.deps.log.warn(`cannot watch ${text}: looking every ${POLL_MS} ms instead`);
    }
    this.unwatched = text;
  }
}
