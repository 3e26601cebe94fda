/** How often something may happen. */
export interface Rate {
  readonly perSecond: number;
  /** How much of what was not used may be used at once. */
  readonly burst: number;
}

/** A token bucket; time is given in milliseconds of any clock that never goes back. */
export class Bucket {
  private tokens: number;
  private at: number | undefined;

  constructor(private readonly rate: Rate) {
    this.tokens = rate.burst;
  }

  /** Milliseconds until the next may happen; 0: now. */
  wait(now: number): number {
    this.fill(now);
    return this.tokens >= 1 ? 0 : Math.ceil(((1 - this.tokens) / this.rate.perSecond) * 1000);
  }

  take(now: number): void {
    this.fill(now);
    this.tokens -= 1;
  }

  private fill(now: number): void {
    const elapsed = now - (this.at ?? now);
    this.at = now;
    this.tokens = Math.min(this.rate.burst, this.tokens + (elapsed / 1000) * this.rate.perSecond);
  }
}
