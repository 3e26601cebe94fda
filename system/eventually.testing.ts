import { setTimeout as sleep } from "node:timers/promises";

/**
 * Waits for a value, looking for it less often the longer it takes; what throws has none yet, as if a program does not
 * listen yet. @throws after so many seconds
 */
export async function eventually<T>(
  look: () => T | undefined | Promise<T | undefined>,
  what = "it",
  seconds = 120,
): Promise<T> {
  const begin = performance.now();
  let cause: unknown;
  for (let ms = 0; ms < seconds * 1000; ms = performance.now() - begin) {
    try {
      const found = await look();
      if (found !== undefined) return found;
      cause = undefined;
    } catch (error) {
      cause = error;
    }
    await sleep(Math.min(100, 5 + ms / 20));
  }
  throw new Error(`waited ${seconds} s for ${what}`, { cause });
}
