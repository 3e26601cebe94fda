import { Backoff, backoffMs, KeyedBackoff } from "./backoff";

const policy = { firstMs: 500, longestMs: 60_000 };

test("doubles up to its maximum, and random reduction is at most half", () => {
  expect([1, 2, 8, 2_000].map((failures) => backoffMs(policy, failures, 1))).toEqual([500, 1_000, 60_000, 60_000]);
  expect(backoffMs(policy, 2, 0)).toBe(500);
});

test("is reset, and is separate for each key", () => {
  const backoff = new Backoff(policy, () => 1);
  expect([backoff.next(), backoff.next(), backoff.failures]).toEqual([500, 1_000, 2]);
  backoff.reset();
  expect([backoff.failures, backoff.next()]).toEqual([0, 500]);
  const keyed = new KeyedBackoff(policy, () => 1);
  expect([keyed.next("a"), keyed.next("a"), keyed.next("b"), keyed.failures("a")]).toEqual([500, 1_000, 500, 2]);
  expect([...keyed.keys()]).toEqual(["a", "b"]);
  keyed.forget("a");
  expect([keyed.failures("a"), keyed.next("a")]).toEqual([0, 500]);
});
