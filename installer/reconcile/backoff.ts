/**
 * Back-off for repairs of a file that another writer keeps changing. The first repairs are immediate. Each repair that
 * is undone at once doubles the wait before the next one, up to half a minute; every two seconds that a repair lasts
 * undo one doubling. An owner that writes its file every few seconds is thus followed each time, and one that writes it
 * many times a second is not. Serves every way to chain: a program may also keep removing a drop-in.
 */
export interface Backoff {
  /** Number of doublings. */
  readonly level: number;
  /** Time of the last repair. */
  readonly repairedAt: number;
  /** Whether it has been undone since. */
  readonly undone: boolean;
  /** Repairs in a row that were undone within ten seconds. */
  readonly contests: number;
}

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 30_000;
const LASTING_MS = 2_000;
const CONTEST_MS = 10_000;

/** The state before the first repair. */
export const NO_BACKOFF: Backoff = { level: 0, repairedAt: Number.NEGATIVE_INFINITY, undone: true, contests: 0 };

/** Notes that a repair is needed. */
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

/** Notes a repair, whether or not it will succeed. */
export function repaired(backoff: Backoff, now: number): Backoff {
  return { ...backoff, level: backoff.level + 1, repairedAt: now, undone: false };
}

/** Whether another writer has undone the last repair. */
export function isContested(backoff: Backoff): boolean {
  return backoff.undone && backoff.contests > 0;
}
