/** Timers in order of their due time; timers due at the same time run in the order in which they were set. */

/** A set timer. */
export interface Timer {
  /** Milliseconds of {@link Timers}' clock. */
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

/** As in Node: at least a millisecond, also for a value that is not a number or is too large. */
const MAX_MS = 2 ** 31 - 1;

export class Timers {
  private readonly waiting: Timer[] = [];
  private order = 0;

  /** @param now milliseconds of a monotonic clock */
  constructor(private readonly now: () => number) {}

  set(run: () => void, milliseconds: number): Timer {
    const delay = milliseconds >= 1 && milliseconds <= MAX_MS ? milliseconds : 1;
    const timer = { at: this.now() + delay, order: this.order++, run };
    this.waiting.splice(this.placeOf(timer), 0, timer);
    return timer;
  }

  /** No effect on a timer that has run or was cleared. */
  clear(timer: Timer): void {
    const place = this.placeOf(timer);
    if (this.waiting[place] === timer) this.waiting.splice(place, 1);
  }

  /** Milliseconds until the next timer is due, 0 if one is due; undefined without timers. */
  untilNext(): number | undefined {
    const next = this.waiting[0];
    return next && Math.max(0, next.at - this.now());
  }

  /** Runs the due timers, not those set meanwhile. Runs `after` after each. */
  runDue(after: () => void): void {
    const now = this.now();
    for (;;) {
      const next = this.waiting[0];
      if (next === undefined || next.at > now) return;
      this.waiting.shift();
      next.run();
      after();
    }
  }

  /** Its index, or where to insert it. */
  private placeOf(timer: Timer): number {
    let [low, high] = [0, this.waiting.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = this.waiting[middle] as Timer;
      if (other.at < timer.at || (other.at === timer.at && other.order < timer.order)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
