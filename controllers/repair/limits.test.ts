import { Breakers } from "./breaker";
import { retryAfter } from "./decide";

const MINUTE = 60_000;

describe("a breaker", () => {
  const policy = { rounds: 3, pauseMs: 5 * MINUTE, longestPauseMs: 15 * MINUTE, forgetMs: 30 * MINUTE };
  let breakers: Breakers;
  beforeEach(() => {
    breakers = new Breakers(policy);
  });

  /** Deletes a pod that was seen since the last round, a second after it was seen. */
  function round(at: number): void {
    expect(breakers.ask("web", at, at + 1_000)).toEqual({ kind: "go" });
    breakers.deleting("web", at, at + 1_000);
  }

  function threeRounds(): void {
    for (const at of [0, 10_000, 20_000]) round(at);
  }

  it("opens when pods came back broken from three rounds", () => {
    threeRounds();
    const wanted = { kind: "open", rounds: 3, waitMs: 5 * MINUTE };
    expect(breakers.ask("web", 30_000, 31_000)).toEqual(wanted);
    expect(breakers.ask("web", 30_000, 31_000)).toEqual(wanted);
    expect(breakers.openCount(31_000)).toBe(0);
    breakers.open("web", 31_000);
    expect(breakers.openCount(31_000)).toBe(1);
    expect(breakers.ask("web", 30_000, 32_000)).toEqual({ kind: "wait", waitMs: 5 * MINUTE - 1_000 });
    expect(breakers.ask("other", 30_000, 32_000)).toEqual({ kind: "go" });
  });

  it("counts all pods that were there at once as one round", () => {
    for (let index = 0; index < 50; index++) breakers.deleting("web", 0, 1_000 + index);
    round(10_000);
    round(20_000);
    expect(breakers.ask("web", 30_000, 31_000).kind).toBe("open");
  });

  it("tries one more round after each pause, and pauses longer each time", () => {
    threeRounds();
    let now = 31_000;
    for (const pause of [5, 10, 15, 15]) {
      expect(breakers.ask("web", now, now)).toEqual({
        kind: "open",
        rounds: expect.anything(),
        waitMs: pause * MINUTE,
      });
      breakers.open("web", now);
      now += pause * MINUTE;
      expect(breakers.ask("web", now - 1, now - 1).kind).toBe("wait");
      expect(breakers.ask("web", 30_000, now).kind).toBe("go");
      breakers.deleting("web", 30_000, now);
      now += 10_000;
    }
  });

  it("forgets an owner that gave no more cause", () => {
    threeRounds();
    const later = 21_000 + policy.forgetMs;
    expect(breakers.ask("web", later - 1_000, later - 1).kind).toBe("open");
    expect(breakers.ask("web", later - 1_000, later).kind).toBe("go");
    breakers.deleting("web", later - 1_000, later);
    expect(breakers.ask("web", later + 1_000, later + 2_000).kind).toBe("go");
  });
});

test("a deletion that failed is tried again ever later, and at least every minute", () => {
  expect([1, 2, 3, 7, 20].map(retryAfter)).toEqual([1_000, 2_000, 4_000, 60_000, 60_000]);
});
