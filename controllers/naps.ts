import type { Clock } from "./clock";

/** Does one step after the other, with naps between them that end early when something has changed. */
export class Naps {
  private nap = new AbortController();

  constructor(
    private readonly clock: Pick<Clock, "sleep">,
    private readonly signal: AbortSignal,
  ) {}

  /** Something has changed: the nap ends, or the next one does not begin. */
  wake(): void {
    this.nap.abort();
  }

  /** Runs until the signal is given; `step` returns the milliseconds to wait before the next. */
  async run(step: () => Promise<number>): Promise<void> {
    const { clock, signal } = this;
    signal.addEventListener("abort", () => this.wake());
    while (!signal.aborted) {
      this.nap = new AbortController();
      const pause = await step();
      if (pause > 0 && !signal.aborted) await clock.sleep(pause, this.nap.signal);
    }
  }
}
