import { Bucket, type Rate } from "../../bucket";
import type { Clock } from "../../clock";

/** Makes callers wait for their turn, first come, first served. */
export class Limiter {
  private readonly bucket: Bucket;

  constructor(
    rate: Rate,
    private readonly clock: Clock,
    private readonly signal: AbortSignal,
  ) {
    this.bucket = new Bucket(rate);
  }

  /** Resolves when it is the caller's turn, or when all is to end. */
  async turn(): Promise<void> {
    const now = this.clock.now();
    const pause = this.bucket.wait(now);
    // Taken before it is there: the next caller waits longer by that.
    this.bucket.take(now);
    if (pause > 0) await this.clock.sleep(pause, this.signal);
  }
}
