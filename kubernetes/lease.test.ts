import { claimed, mayHold, released, sight } from "./leader-election";
import type { LeaseSpec } from "./types";

const date = new Date("2026-01-02T03:04:05.678Z");
const claim = { identity: "a", date, durationMs: 15_000 };
const other: LeaseSpec = {
  holderIdentity: "b",
  leaseDurationSeconds: 15,
  acquireTime: "2020-01-01T00:00:00.000000Z",
  renewTime: "2020-01-01T00:00:00.000000Z",
  leaseTransitions: 3,
};

test("a lease with old times expires only after it was seen unchanged for its duration", () => {
  const first = sight(undefined, other, 1_000);
  expect(mayHold(first, "a", 1_000)).toBe(false);
  expect(mayHold(sight(first, { ...other }, 15_999), "a", 15_999)).toBe(false);
  expect(mayHold(sight(first, { ...other }, 16_000), "a", 16_000)).toBe(true);
});

test("a renewal counts from when it was seen, whatever the other's clock", () => {
  const first = sight(undefined, other, 0);
  const renewed = sight(first, { ...other, renewTime: "2019-01-01T00:00:00.000000Z" }, 14_000);
  expect(mayHold(renewed, "a", 28_999)).toBe(false);
  expect(mayHold(renewed, "a", 29_000)).toBe(true);
});

test("our own lease and a free one can be taken at once", () => {
  expect(mayHold(sight(undefined, { ...other, holderIdentity: "a" }, 0), "a", 0)).toBe(true);
  expect(mayHold(sight(undefined, released(other, date), 0), "a", 0)).toBe(true);
  expect(mayHold(sight(undefined, {}, 0), "a", 0)).toBe(true);
});

test("taking counts a transition, renewing does not", () => {
  const taken = claimed(other, claim);
  expect(taken).toEqual({
    holderIdentity: "a",
    leaseDurationSeconds: 15,
    acquireTime: "2026-01-02T03:04:05.678000Z",
    renewTime: "2026-01-02T03:04:05.678000Z",
    leaseTransitions: 4,
  });
  const later = new Date("2026-01-02T03:04:07Z");
  expect(claimed(taken, { ...claim, date: later })).toEqual({ ...taken, renewTime: "2026-01-02T03:04:07.000000Z" });
  expect(claimed(undefined, claim)).toEqual({ ...taken, leaseTransitions: 0 });
  expect(released(taken, later)).toMatchObject({ holderIdentity: "", leaseTransitions: 4 });
});
