import type { Clock } from "../process/clock";
import { type BackoffPolicy, KeyedBackoff } from "./backoff";

interface WorkQueueDeps {
  readonly clock: Clock;
  /** Ends the queue after the current reconciliations. */
  readonly signal: AbortSignal;
  /** Called for every failure, with the number in a row and the milliseconds until the retry. */
  readonly failed: (key: string, error: unknown, failures: number, retryMs: number) => void;
}

interface WorkQueueOptions {
  /** Back-off of a failed key. @default 0.5 s to 60 s */
  readonly backoff?: BackoffPolicy;
}

/** A delayed key. */
interface Later {
  readonly at: number;
  readonly cancel: AbortController;
}

const BACKOFF: BackoffPolicy = { firstMs: 500, longestMs: 60_000 };

/**
 * A queue of keys to reconcile, in the order of addition, urgent ones first. A key waits once, however often it is
 * added, and is never reconciled concurrently; if it is added during its reconciliation, it is reconciled again
 * afterwards.
 */
export class WorkQueue {
  private readonly urgent = new Set<string>();
  private readonly waiting = new Set<string>();
  private readonly active = new Set<string>();
  /** Keys added while active, and whether they are urgent. */
  private readonly again = new Map<string, boolean>();
  private readonly later = new Map<string, Later>();
  private readonly backoff: KeyedBackoff;
  private readonly sleepers: (() => void)[] = [];

  /** @param reconcile may return the milliseconds until the key is reconciled again; a key is retried after an error */
  constructor(
    private readonly reconcile: (key: string) => Promise<number | undefined> | Promise<void>,
    private readonly deps: WorkQueueDeps,
    options: WorkQueueOptions = {},
  ) {
    this.backoff = new KeyedBackoff(options.backoff ?? BACKOFF, deps.clock.random);
    deps.signal.addEventListener("abort", () => {
      for (const wake of this.sleepers.splice(0)) wake();
      for (const { cancel } of this.later.values()) cancel.abort();
    });
  }

  /** Number of waiting and delayed keys. */
  get depth(): number {
    return new Set([...this.urgent, ...this.waiting, ...this.active, ...this.later.keys()]).size;
  }

  /** @param options `urgent`: before all other keys */
  add(key: string, { urgent = false }: { readonly urgent?: boolean } = {}): void {
    if (this.active.has(key)) {
      this.again.set(key, urgent || this.again.get(key) === true);
      return;
    }
    if (urgent) {
      this.waiting.delete(key);
      this.urgent.add(key);
    } else if (!this.urgent.has(key)) {
      this.waiting.add(key);
    }
    this.sleepers.shift()?.();
  }

  /**
   * Adds a key after a delay in milliseconds; the earliest of several counts. @returns false if an earlier one exists
   */
  addAfter(key: string, ms: number): boolean {
    const { clock, signal } = this.deps;
    const at = clock.now() + ms;
    const known = this.later.get(key);
    if (known !== undefined && known.at <= at) return false;
    known?.cancel.abort();
    const cancel = new AbortController();
    this.later.set(key, { at, cancel });
    void clock.sleep(ms, cancel.signal).then(() => {
      if (this.later.get(key)?.cancel !== cancel) return;
      this.later.delete(key);
      if (!signal.aborted) this.add(key);
    });
    return true;
  }

  /** Reconciles until the signal is given. @param workers number of concurrent keys */
  async run(workers = 1): Promise<void> {
    await Promise.all(Array.from({ length: workers }, () => this.work()));
  }

  private async work(): Promise<void> {
    const { signal } = this.deps;
    while (!signal.aborted) {
      const key = this.next();
      if (key === undefined) await new Promise<void>((resolve) => this.sleepers.push(resolve));
      else await this.process(key);
    }
  }

  private next(): string | undefined {
    for (const lane of [this.urgent, this.waiting]) {
      const { done, value } = lane.values().next();
      if (done === true) continue;
      lane.delete(value);
      this.active.add(value);
      return value;
    }
    return undefined;
  }

  private async process(key: string): Promise<void> {
    try {
      const againMs = await this.reconcile(key);
      this.backoff.forget(key);
      if (typeof againMs === "number") this.addAfter(key, againMs);
    } catch (error) {
      const retryMs = this.backoff.next(key);
      this.addAfter(key, retryMs);
      this.deps.failed(key, error, this.backoff.failures(key), retryMs);
    }
    this.active.delete(key);
    const urgent = this.again.get(key);
    this.again.delete(key);
    if (urgent !== undefined) this.add(key, { urgent });
  }
}
