/**
 * Damps a fight over a file. The first repairs are immediate; each that is undone at once doubles the wait before the
 * next one, up to half a minute; every two seconds that a repair lasts take one step back. So an owner who writes his
 * file every few seconds is followed each time, and one who writes it many times a second is not.
 */
export interface Backoff {
  /** How far the fight has gone; 0 is peace. */
  readonly level: number;
  /** When the last repair was made. */
  readonly repairedAt: number;
  /** Whether it has been seen undone since. */
  readonly undone: boolean;
  /** Repairs in a row that were undone within ten seconds. */
  readonly contests: number;
}

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 30_000;
const LASTING_MS = 2_000;
const CONTEST_MS = 10_000;

/** Before the first repair. */
export const NO_BACKOFF: Backoff = { level: 0, repairedAt: Number.NEGATIVE_INFINITY, undone: true, contests: 0 };

/** Takes note that a repair is needed. */
export function undone(backoff: Backoff, now: number): Backoff {
  if (backoff.undone) return backoff;
  const lasted = now - backoff.repairedAt;
  const level = Math.max(0, backoff.level - Math.floor(lasted / LASTING_MS));
  return { ...backoff, level, undone: true, contests: lasted < CONTEST_MS ? backoff.contests + 1 : 0 };
}

/** Milliseconds until the next repair may be made. */
export function waitMs(backoff: Backoff, now: number): number {
  const wait = backoff.level < 2 ? 0 : Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (backoff.level - 2));
  return Math.max(0, backoff.repairedAt + wait - now);
}

/** Takes note that a repair is being made, whether or not it will succeed. */
export function repaired(backoff: Backoff, now: number): Backoff {
  return { ...backoff, level: backoff.level + 1, repairedAt: now, undone: false };
}

/** Whether the last repair did not last: another writer is at work. */
export function isContested(backoff: Backoff): boolean {
  return backoff.undone && backoff.contests > 0;
}
