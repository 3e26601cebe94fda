import { OwnerBackoff } from "./owner-backoff";

const MINUTE = 60_000;
const POLICY = { rounds: 3, firstMs: 5 * MINUTE, longestMs: 15 * MINUTE, forgetMs: 30 * MINUTE };

let backoff: OwnerBackoff;
beforeEach(() => {
  backoff = new OwnerBackoff(POLICY);
});

/** Deletes a pod that was first seen at a time, a second later. */
function round(firstSeen: number): void {
  expect(backoff.ask("web", firstSeen, firstSeen + 1_000)).toEqual({ kind: "delete" });
  backoff.recordDeletion("web", firstSeen, firstSeen + 1_000);
}

function threeRounds(): void {
  for (const firstSeen of [0, 10_000, 20_000]) round(firstSeen);
}

test("an owner is suspended after three rounds of broken pods", () => {
  threeRounds();
  const suspend = { kind: "suspend", rounds: 3, ms: 5 * MINUTE };
  expect(backoff.ask("web", 30_000, 31_000)).toEqual(suspend);
  expect(backoff.ask("web", 30_000, 31_000)).toEqual(suspend);
  expect(backoff.suspended(31_000)).toBe(0);
  backoff.suspend("web", 31_000);
  expect(backoff.suspended(31_000)).toBe(1);
  expect(backoff.ask("web", 30_000, 32_000)).toEqual({ kind: "wait", ms: 5 * MINUTE - 1_000 });
  expect(backoff.ask("other", 30_000, 32_000)).toEqual({ kind: "delete" });
  expect(backoff.suspended(31_000 + 5 * MINUTE)).toBe(0);
});

test("all pods that existed when a round began belong to it", () => {
  for (let index = 0; index < 50; index++) backoff.recordDeletion("web", 0, 1_000 + index);
  round(10_000);
  expect(backoff.ask("web", 0, 12_000)).toEqual({ kind: "delete" });
  round(20_000);
  expect(backoff.ask("web", 30_000, 31_000).kind).toBe("suspend");
});

test("each suspension is followed by one more round, and lasts longer than the previous one", () => {
  threeRounds();
  let now = 31_000;
  for (const [index, minutes] of [5, 10, 15, 15].entries()) {
    expect(backoff.ask("web", now, now)).toEqual({ kind: "suspend", rounds: 3 + index, ms: minutes * MINUTE });
    backoff.suspend("web", now);
    now += minutes * MINUTE;
    expect(backoff.ask("web", now - 1, now - 1).kind).toBe("wait");
    expect(backoff.ask("web", 30_000, now).kind).toBe("delete");
    backoff.recordDeletion("web", 30_000, now);
    now += 10_000;
  }
});

test("an owner without broken pods for long is forgotten", () => {
  threeRounds();
  const later = 21_000 + POLICY.forgetMs;
  expect(backoff.ask("web", 30_000, later - 1).kind).toBe("suspend");
  expect(backoff.ask("web", 30_000, later).kind).toBe("delete");
  backoff.recordDeletion("web", 30_000, later);
  expect(backoff.ask("web", later + 1_000, later + 2_000).kind).toBe("delete");
});

test("the time until an owner is forgotten begins with the end of its suspension", () => {
  threeRounds();
  backoff.suspend("web", 31_000);
  const until = 31_000 + POLICY.firstMs;
  backoff.recordDeletion("web", 30_000, until);
  expect(backoff.ask("web", until + 1, until + POLICY.forgetMs - 1).kind).toBe("suspend");
});

test("a working pod resets its owner if it is newer than the last round", () => {
  threeRounds();
  expect(backoff.recordSuccess("web", 15_000)).toBe(false);
  expect(backoff.ask("web", 30_000, 31_000).kind).toBe("suspend");
  backoff.suspend("web", 31_000);
  expect(backoff.recordSuccess("web", 40_000)).toBe(true);
  expect(backoff.ask("web", 30_000, 41_000).kind).toBe("delete");
  expect(backoff.recordSuccess("web", 40_000)).toBe(false);
});
