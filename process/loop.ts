import type { Clock } from "./clock";

interface LoopDeps {
  readonly clock: Pick<Clock, "sleep">;
  /** Ends the loop after the current step. */
  readonly signal: AbortSignal;
}

/** The maximum of timers. */
const LONGEST_PAUSE_MS = 2 ** 31 - 1;

/** Runs a function repeatedly, with pauses that {@link wake} ends. */
export class Loop {
  private pause = new AbortController();

  /**
   * @param step returns the milliseconds to wait before it runs again; Infinity: until the loop is woken. An error that
   * it throws ends the loop.
   */
  constructor(
    private readonly step: () => Promise<number>,
    private readonly deps: LoopDeps,
  ) {
    deps.signal.addEventListener("abort", () => this.wake());
  }

  /** Ends the pause. During a step: the step runs again at once. */
  wake(): void {
    this.pause.abort();
  }

  /** Runs until the signal is given. */
  async run(): Promise<void> {
    const { clock, signal } = this.deps;
    while (!signal.aborted) {
      this.pause = new AbortController();
      const pauseMs = await this.step();
      if (pauseMs > 0 && !signal.aborted) {
        await clock.sleep(Math.min(pauseMs, LONGEST_PAUSE_MS), this.pause.signal);
      }
    }
  }
}
