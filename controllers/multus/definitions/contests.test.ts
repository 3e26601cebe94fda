import { Contests } from "./contests";

let contests: Contests;
beforeEach(() => {
  contests = new Contests();
});

/** Writes so often that it has to wait. @returns the pauses */
function fight(rounds: number): number[] {
  let now = 0;
  return Array.from({ length: rounds }, () => {
    const pause = contests.wait("shop", "{}", now);
    now += pause;
    contests.wrote("shop", "{}", now);
    return pause;
  });
}

test("three repairs in a row are done at once, then each waits longer, up to a minute", () => {
  expect(fight(12)).toEqual([0, 0, 0, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000, 60_000]);
});

test("other namespaces and another text do not wait", () => {
  fight(5);
  expect(contests.wait("other", "{}", 0)).toBe(0);
  expect(contests.wait("shop", "{ }", 0)).toBe(0);
  contests.forget("shop");
  expect(contests.wait("shop", "{}", 0)).toBe(0);
});

test("what stayed right for five minutes starts from nothing", () => {
  for (let index = 0; index < 5; index++) contests.wrote("shop", "{}", 0);
  expect(contests.wait("shop", "{}", 1_000)).toBe(3_000);
  expect(contests.wait("shop", "{}", 300_000)).toBe(0);
  contests.wrote("shop", "{}", 300_000);
  contests.wrote("shop", "{}", 300_000);
  expect(contests.wait("shop", "{}", 300_000)).toBe(0);
});

test("nothing is kept of namespaces that come and go", () => {
  const contests = new Contests();
  for (let round = 0; round < 10_000; round++) contests.wrote(`preview-${round}`, "a", round * 1_000);
  expect(contests.size).toBe(300);
  for (const now of [10_000_000, 10_000_100]) contests.wrote("preview-9990", "a", now);
  expect(contests.wait("preview-9990", "a", 10_000_100)).toBe(1_000);
});
