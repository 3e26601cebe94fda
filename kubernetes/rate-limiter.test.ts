import { type Rate, RateLimiter } from "./rate-limiter";

/** A limiter and its clock. */
function limiterOf(rate: Rate) {
  const time = { now: 0 };
  const pauses: number[] = [];
  const sleep = async (ms: number) => void pauses.push(ms);
  return { time, pauses, limiter: new RateLimiter(rate, { now: () => time.now, sleep }) };
}

it("allows a burst, then one at a time", () => {
  const { time, limiter } = limiterOf({ perSecond: 2, burst: 3 });
  for (let index = 0; index < 3; index++) {
    expect(limiter.waitMs()).toBe(0);
    limiter.take();
  }
  expect(limiter.waitMs()).toBe(500);
  time.now = 400;
  expect(limiter.waitMs()).toBe(100);
  time.now = 500;
  expect(limiter.waitMs()).toBe(0);
  limiter.take();
  expect(limiter.waitMs()).toBe(500);
});

it("never accumulates more than a burst", () => {
  const { time, limiter } = limiterOf({ perSecond: 1, burst: 2 });
  expect(limiter.waitMs()).toBe(0);
  time.now = 1_000_000;
  for (let index = 0; index < 2; index++) limiter.take();
  expect(limiter.waitMs()).toBe(1_000);
});

it("serves callers one after the other", async () => {
  const { pauses, limiter } = limiterOf({ perSecond: 2, burst: 1 });
  for (let index = 0; index < 4; index++) await limiter.turn();
  expect(pauses).toEqual([500, 1_000, 1_500]);
});
