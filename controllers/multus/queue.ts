import type { Clock } from "../clock";

/** What a queue works with. */
export interface QueueTools {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Told about every attempt that failed, counted from 1, and the pause until the next. */
  readonly failed: (key: string, error: unknown, attempt: number) => void;
}

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 60_000;

/** Pause after so many failures of one key: twice as long each time, and never the same for all. */
export function retryPause(failures: number, random: number): number {
  return Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), LONGEST_PAUSE_MS) * (0.5 + random / 2);
}

/**
 * Keys that wait for being worked on, first come, first served. A key waits once, however often it is added; it is
 * never worked on twice at once; what is added meanwhile comes again after that.
 */
export class WorkQueue {
  private readonly waiting = new Set<string>();
  private readonly active = new Set<string>();
  private readonly again = new Set<string>();
  private readonly failures = new Map<string, number>();
  private readonly pausing = new Set<string>();
  private readonly sleepers: (() => void)[] = [];

  constructor(
    private readonly work: (key: string) => Promise<void>,
    private readonly tools: QueueTools,
  ) {
    tools.signal.addEventListener("abort", () => {
      for (const wake of this.sleepers.splice(0)) wake();
    });
  }

  /** How many keys are still to be worked on. */
  get depth(): number {
    const { active, pausing, waiting } = this;
    return waiting.size + active.size + [...pausing].filter((key) => !waiting.has(key) && !active.has(key)).length;
  }

  add(key: string): void {
    if (this.active.has(key)) {
      this.again.add(key);
      return;
    }
    this.waiting.add(key);
    this.sleepers.shift()?.();
  }

  /** Adds a key after so many milliseconds. @returns false where it is to be added later already */
  addLater(key: string, ms: number): boolean {
    const { clock, signal } = this.tools;
    if (this.pausing.has(key)) return false;
    this.pausing.add(key);
    void clock.sleep(ms, signal).then(() => {
      this.pausing.delete(key);
      if (!signal.aborted) this.add(key);
    });
    return true;
  }

  /** Works until the signal is given; what is begun then is finished. */
  async run(workers: number): Promise<void> {
    await Promise.all(Array.from({ length: workers }, () => this.worker()));
  }

  private async worker(): Promise<void> {
    const { signal } = this.tools;
    while (!signal.aborted) {
      const key = this.next();
      if (key === undefined) await new Promise<void>((resolve) => this.sleepers.push(resolve));
      else await this.process(key);
    }
  }

  private next(): string | undefined {
    const { done, value } = this.waiting.values().next();
    if (done === true) return undefined;
    this.waiting.delete(value);
    this.active.add(value);
    return value;
  }

  private async process(key: string): Promise<void> {
    try {
      await this.work(key);
      this.failures.delete(key);
    } catch (error) {
      const attempt = (this.failures.get(key) ?? 0) + 1;
      this.failures.set(key, attempt);
      this.tools.failed(key, error, attempt);
      this.addLater(key, retryPause(attempt, this.tools.clock.random()));
    }
    this.active.delete(key);
    if (this.again.delete(key)) this.add(key);
  }
}
