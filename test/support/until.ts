import { setTimeout as sleep } from "node:timers/promises";

/** Waits for a condition, which is checked less often the longer it takes. @throws after so many seconds */
export async function until(what: string, condition: () => boolean | Promise<boolean>, seconds = 60): Promise<void> {
  const begin = performance.now();
  for (let ms = 0; ms < seconds * 1000; ms = performance.now() - begin) {
    if (await condition()) return;
    await sleep(Math.min(100, 5 + ms / 20));
  }
  throw new Error(`waited ${seconds} s for ${what}`);
}
