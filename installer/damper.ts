/**
 * Damps a fight over a file. The first repairs are immediate; each that does not last doubles the wait before the next
 * one, up to half a minute; every ten seconds that a repair lasts take one step back.
 */
export interface Damper {
  /** How far the fight has gone; 0 is peace. */
  readonly level: number;
  /** When the last repair was made. */
  readonly repairedAt: number;
  /** Whether it has been seen undone since. */
  readonly undone: boolean;
}

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 30_000;
const LASTING_MS = 10_000;

export const PEACE: Damper = { level: 0, repairedAt: Number.NEGATIVE_INFINITY, undone: true };

/** Takes note that a repair is needed. */
export function undone(damper: Damper, now: number): Damper {
  if (damper.undone) return damper;
  const lasted = Math.floor((now - damper.repairedAt) / LASTING_MS);
  return { ...damper, level: Math.max(0, damper.level - lasted), undone: true };
}

/** Milliseconds until the next repair may be made. */
export function waitMs(damper: Damper, now: number): number {
  const wait = damper.level < 2 ? 0 : Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (damper.level - 2));
  return Math.max(0, damper.repairedAt + wait - now);
}

/** Takes note that a repair is being made, whether or not it will succeed. */
export function repaired(damper: Damper, now: number): Damper {
  return { level: damper.level + 1, repairedAt: now, undone: false };
}

/** Whether the last repair did not last: another writer is at work. */
export function isContested(damper: Damper): boolean {
  return damper.undone && damper.level > 0;
}
