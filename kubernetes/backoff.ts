/** Exponential back-off after failures. */
export interface BackoffPolicy {
  /** Milliseconds after the first failure. */
  readonly firstMs: number;
  /** Maximum pause in milliseconds. */
  readonly longestMs: number;
}

/**
 * Milliseconds to wait after a number of failures in a row, counted from 1: between half and all of the policy's pause,
 * so that processes that fail at the same time do not retry at the same time. @param random from 0 up to 1
 */
export function backoffMs({ firstMs, longestMs }: BackoffPolicy, failures: number, random: number): number {
  return Math.min(firstMs * 2 ** (failures - 1), longestMs) * (0.5 + random / 2);
}

/** The failures in a row of one operation. */
export class Backoff {
  private count = 0;

  constructor(
    private readonly policy: BackoffPolicy,
    private readonly random: () => number,
  ) {}

  /** Failures since the last reset. */
  get failures(): number {
    return this.count;
  }

  /** Counts a failure. @returns milliseconds to wait */
  next(): number {
    this.count += 1;
    return backoffMs(this.policy, this.count, this.random());
  }

  reset(): void {
    this.count = 0;
  }
}

/** The failures in a row of many operations, by key. */
export class KeyedBackoff {
  private readonly counts = new Map<string, number>();

  constructor(
    private readonly policy: BackoffPolicy,
    private readonly random: () => number,
  ) {}

  /** Counts a failure of a key. @returns milliseconds to wait */
  next(key: string): number {
    const failures = this.failures(key) + 1;
    this.counts.set(key, failures);
    return backoffMs(this.policy, failures, this.random());
  }

  /** Failures of a key since it was forgotten. */
  failures(key: string): number {
    return this.counts.get(key) ?? 0;
  }

  /** The next failure of the key counts as its first. */
  forget(key: string): void {
    this.counts.delete(key);
  }

  /** Keys that have failed. */
  keys(): IterableIterator<string> {
    return this.counts.keys();
  }
}
