import { type Backoff, isContested, NO_BACKOFF, repaired, undone, waitMs } from "./backoff";

/** Undoes each repair at once for some time. Returns when repairs were made. */
function undoneRepairs(forMs: number, stepMs: number): readonly number[] {
  const repairs: number[] = [];
  let backoff: Backoff = NO_BACKOFF;
  for (let now = 0; now < forMs; now += stepMs) {
    backoff = undone(backoff, now);
    if (waitMs(backoff, now) > 0) continue;
    backoff = repaired(backoff, now);
    repairs.push(now);
  }
  return repairs;
}

test("the first two repairs are immediate, later ones wait longer and longer, at most half a minute", () => {
  const repairs = undoneRepairs(300_000, 50);
  const waits = repairs.slice(1).map((at, index) => at - (repairs[index] ?? 0));
  expect(waits.slice(0, 9)).toEqual([50, 250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000]);
  expect(Math.max(...waits)).toBe(30_000);
});

test("a minute of stripping every 100 ms costs few repairs", () => {
  expect(undoneRepairs(60_000, 100).length).toBeLessThanOrEqual(10);
});

test.each([2, 3, 4, 30])("if an owner rewrites a file every %i s, each repair is immediate", (seconds) => {
  let backoff = NO_BACKOFF;
  for (let now = 0; now < 3_600_000; now += seconds * 1000) {
    backoff = undone(backoff, now);
    expect(waitMs(backoff, now)).toBe(0);
    backoff = repaired(backoff, now);
  }
});

test.each([100, 500, 1_000, 1_500, 1_999, 2_000, 2_500])(
  "a writer causes at most 40 repairs in a minute: %i ms",
  (ms) => {
    let backoff = NO_BACKOFF;
    const repairs: number[] = [];
    let chained = false;
    for (let now = 0; now < 600_000; now += 50) {
      if (now % ms < 50) chained = false;
      if (chained) continue;
      backoff = undone(backoff, now);
      if (waitMs(backoff, now) > 0) continue;
      backoff = repaired(backoff, now);
      repairs.push(now);
      chained = true;
    }
    const inMinute = repairs.map((at) => repairs.filter((other) => other >= at && other < at + 60_000).length);
    expect(Math.max(...inMinute)).toBeLessThanOrEqual(40);
  },
);

test("a lasting repair resets the back-off step by step", () => {
  const fought: Backoff = { level: 6, repairedAt: 0, undone: false, contests: 6 };
  expect(undone(fought, 5_000)).toMatchObject({ level: 4, contests: 7 });
  expect(isContested(undone(fought, 5_000))).toBe(true);
  expect(undone(fought, 12_000)).toMatchObject({ level: 0, contests: 0 });
  expect(isContested(undone(fought, 12_000))).toBe(false);
});
