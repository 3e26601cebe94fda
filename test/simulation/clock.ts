/** Virtual time and chance: nothing else in the simulation decides what happens when. */

/** 2026-11-26 in milliseconds since 1970. */
export const EPOCH = 1_795_651_200_000;

/** Numbers from 0 up to 1, the same for the same seed (mulberry32). */
export type Random = () => number;

export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const below = (random: Random, limit: number): number => Math.floor(random() * limit);

export const pick = <T>(random: Random, from: readonly T[]): T => from[below(random, from.length)] as T;

/** Picks by shares. */
export function weighted<T>(random: Random, from: readonly (readonly [share: number, value: T])[]): T {
  let left = random() * from.reduce((sum, [share]) => sum + share, 0);
  for (const [share, value] of from) {
    left -= share;
    if (left < 0) return value;
  }
  throw new Error("there is nothing to pick");
}

/** A process whose timers stop when it ends, and wait while it is frozen. */
export interface Party {
  readonly isDead: boolean;
  readonly isFrozen: boolean;
}

/** A set timer. */
interface Timer {
  readonly at: number;
  readonly run: () => void;
  readonly of: Party | undefined;
  isCleared: boolean;
}

/** Time since the begin of a history, in milliseconds. It only moves to the next timer. */
export class Clock {
  now = 1_000;
  private readonly timers: Timer[] = [];

  /** @param of the process to which the timer belongs @param enter runs the callback in that process */
  set(run: () => void, ms: number, of?: Party): Timer {
    const timer = { at: this.now + Math.max(0, ms), run, of, isCleared: false };
    let place = this.timers.length;
    while (place > 0 && (this.timers[place - 1] as Timer).at > timer.at) place--;
    this.timers.splice(place, 0, timer);
    return timer;
  }

  /** Runs the timers that are due in the next milliseconds, each at its time. */
  advance(ms: number): void {
    const end = this.now + ms;
    for (let timer = this.take(end); timer !== undefined; timer = this.take(end)) {
      this.now = Math.max(this.now, timer.at);
      timer.run();
    }
    this.now = Math.max(this.now, end);
  }

  private take(end: number): Timer | undefined {
    for (let place = 0; place < this.timers.length; place++) {
      const timer = this.timers[place] as Timer;
      if (timer.at > end) return undefined;
      const isOver = timer.isCleared || timer.of?.isDead === true;
      if (!isOver && timer.of?.isFrozen === true) continue;
      this.timers.splice(place, 1);
      if (!isOver) return timer;
      place--;
    }
    return undefined;
  }
}
