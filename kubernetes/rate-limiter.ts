import type { Clock } from "../process/clock";

/** How often something may happen. */
export interface Rate {
  readonly perSecond: number;
  /** Size of the bucket. */
  readonly burst: number;
}

/** A token bucket. */
export class RateLimiter {
  private tokens: number;
  private filledAt: number;

  constructor(
    private readonly rate: Rate,
    private readonly clock: Pick<Clock, "now" | "sleep">,
  ) {
    this.tokens = rate.burst;
    this.filledAt = clock.now();
  }

  /** Milliseconds until the next token; 0: now. */
  waitMs(): number {
    this.fill();
    return this.tokens >= 1 ? 0 : Math.ceil(((1 - this.tokens) / this.rate.perSecond) * 1000);
  }

  /** Takes a token now. */
  take(): void {
    this.fill();
    this.tokens -= 1;
  }

  /** Waits for a token and takes it, in the order of calls; ends early when the signal is given. */
  async turn(signal?: AbortSignal): Promise<void> {
    const pauseMs = this.waitMs();
    // Taken in advance, so that the next caller waits longer.
    this.take();
    if (pauseMs > 0) await this.clock.sleep(pauseMs, signal);
  }

  private fill(): void {
    const now = this.clock.now();
    this.tokens = Math.min(this.rate.burst, this.tokens + ((now - this.filledAt) / 1000) * this.rate.perSecond);
    this.filledAt = now;
  }
}
