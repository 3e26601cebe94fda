import { ConflictBackoff } from "./conflict-backoff";

let backoff: ConflictBackoff;
beforeEach(() => {
  backoff = new ConflictBackoff();
});

/** Writes so often that it has to wait. @returns the pauses */
function undoneWrites(rounds: number): number[] {
  let now = 0;
  return Array.from({ length: rounds }, () => {
    const pause = backoff.wait("shop", "{}", now);
    now += pause;
    backoff.wrote("shop", "{}", now);
    return pause;
  });
}

test("three corrections in a row are immediate, then each waits longer, up to a minute", () => {
  expect(undoneWrites(12)).toEqual([0, 0, 0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
});

test("other namespaces and another text do not wait", () => {
  undoneWrites(5);
  expect(backoff.wait("other", "{}", 0)).toBe(0);
  expect(backoff.wait("shop", "{ }", 0)).toBe(0);
  backoff.forget("shop");
  expect(backoff.wait("shop", "{}", 0)).toBe(0);
});

test("five minutes without a conflict reset the back-off", () => {
  for (let index = 0; index < 5; index++) backoff.wrote("shop", "{}", 0);
  expect(backoff.wait("shop", "{}", 1_000)).toBe(3_000);
  expect(backoff.wait("shop", "{}", 300_000)).toBe(0);
  backoff.wrote("shop", "{}", 300_000);
  backoff.wrote("shop", "{}", 300_000);
  expect(backoff.wait("shop", "{}", 300_000)).toBe(0);
});

test("the state of deleted namespaces is not kept", () => {
  const backoff = new ConflictBackoff();
  for (let round = 0; round < 10_000; round++) backoff.wrote(`preview-${round}`, "a", round * 1_000);
  expect(backoff.size).toBe(300);
  for (const now of [10_000_000, 10_000_100]) backoff.wrote("preview-9990", "a", now);
  expect(backoff.wait("preview-9990", "a", 10_000_100)).toBe(1_000);
});

test("a delayed write is noted once", () => {
  expect(backoff.defer("shop")).toBe(false);
  undoneWrites(4);
  expect([backoff.defer("shop"), backoff.defer("shop")]).toEqual([true, false]);
  backoff.wrote("shop", "{}", 1_000);
  expect(backoff.defer("shop")).toBe(true);
});
