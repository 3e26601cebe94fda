import { setTimeout as sleep } from "node:timers/promises";

/**
 * Waits for a condition, which is checked less often the longer it takes; one that throws does not hold yet, as if a
 * program does not listen yet. @throws after so many seconds
 */
export async function until(what: string, condition: () => boolean | Promise<boolean>, seconds = 120): Promise<void> {
  const begin = performance.now();
  let cause: unknown;
  for (let ms = 0; ms < seconds * 1000; ms = performance.now() - begin) {
    try {
      if (await condition()) return;
      cause = undefined;
    } catch (error) {
      cause = error;
    }
    await sleep(Math.min(100, 5 + ms / 20));
  }
  throw new Error(`waited ${seconds} s for ${what}`, { cause });
}
