import { setTimeout as delay } from "node:timers/promises";

/** Time and chance; tests give their own. */
export interface Clock {
  /** Milliseconds that never go back. */
  readonly now: () => number;
  /** The time of day. */
  readonly date: () => Date;
  /** Ends early when the signal is given. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
  /** From 0 up to 1. */
  readonly random: () => number;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  date: () => new Date(),
  sleep: (ms, signal) => delay(ms, undefined, signal === undefined ? {} : { signal }).catch(() => undefined),
  random: Math.random,
};
