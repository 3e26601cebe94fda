import { systemClock } from "../../clock";
import { Limiter } from "./limiter";

test("callers get their turns in order, each a step later than the one before", async () => {
  const slept: number[] = [];
  const clock = { ...systemClock, now: () => 0, sleep: async (ms: number) => void slept.push(ms) };
  const limiter = new Limiter({ perSecond: 10, burst: 2 }, clock, new AbortController().signal);
  await Promise.all(Array.from({ length: 5 }, () => limiter.turn()));
  expect(slept).toEqual([100, 200, 300]);
});
