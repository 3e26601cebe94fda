import type { Clock } from "../../process/clock";

/** A clock that moves on when no work is left to do. */
export class VirtualClock implements Clock {
  private time = 0;
  private due: { readonly at: number; readonly act: () => void }[] = [];

  now = () => this.time;
  date = () => new Date(this.time);
  random = () => 0;
  sleep = (ms: number, signal?: AbortSignal) =>
    new Promise<void>((resolve) => {
      const end = () => {
        signal?.removeEventListener("abort", end);
        resolve();
      };
      this.after(ms, end);
      signal?.addEventListener("abort", end);
    });

  /** Does something after so many milliseconds. */
  after(ms: number, act: () => void): void {
    this.due.push({ at: this.time + ms, act });
  }

  /** Lets so many milliseconds pass. */
  async run(ms: number): Promise<void> {
    for (const end = this.time + ms; this.time < end; ) {
      await new Promise(setImmediate);
      this.time = Math.min(end, ...this.due.map(({ at }) => at));
      const now = this.due.filter(({ at }) => at <= this.time);
      this.due = this.due.filter(({ at }) => at > this.time);
      for (const { act } of now) act();
    }
  }
}
