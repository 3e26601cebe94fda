import type { Credential } from "./credential";
import { plan } from "./plan";

const HOUR = 3_600_000;
const credential = (name: string, validFrom = 0, validTo = 90 * HOUR): Credential => ({
  ...{ cert: `${name}.crt`, key: `${name}.key`, ca: `${name}.ca` },
  ...{ validFrom, validTo },
});
const [old, next] = [credential("old"), credential("next", 59 * HOUR, 150 * HOUR)];
const at = (hours: number, settledMs = 0) => ({ now: hours * HOUR, settledMs, settleMs: 300_000 });

test.each([
  ["waits for two thirds of a life", { serving: old, trusted: [old.ca] }, at(10), { kind: "wait", ms: 50 * HOUR }],
  ["makes the next then", { serving: old, trusted: [old.ca] }, at(60), { kind: "issue", keep: old }],
  [
    "waits until clients trust it",
    { serving: old, next, trusted: [old.ca, next.ca] },
    at(60, 100_000),
    { kind: "wait", ms: 200_000 },
  ],
  ["serves it then", { serving: old, next, trusted: [old.ca, next.ca] }, at(60, 300_000), { kind: "switch", next }],
  [
    "trusts the old until all serve the next",
    { serving: next, trusted: [old.ca, next.ca] },
    at(60, 299_000),
    { kind: "wait", ms: 1_000 },
  ],
  ["forgets the old then", { serving: next, trusted: [old.ca, next.ca] }, at(60, 300_000), { kind: "forget" }],
  // What is left is a third again.
  ["and waits again", { serving: next, trusted: [next.ca] }, at(61), { kind: "wait", ms: (150 - 91 / 3 - 61) * HOUR }],
  // Nothing can wait for a certificate that has expired.
  ["expired", { serving: old, trusted: [old.ca] }, at(91), { kind: "issue", keep: undefined }],
  ["expired beside the next", { serving: old, next, trusted: [old.ca, next.ca] }, at(91), { kind: "switch", next }],
  [
    "a next that expired",
    { serving: next, next: old, trusted: [old.ca, next.ca] },
    at(91),
    { kind: "issue", keep: next },
  ],
  ["not valid yet", { serving: next, trusted: [next.ca] }, at(10), { kind: "issue", keep: undefined }],
  ["no Secret", undefined, at(10), { kind: "issue", keep: undefined }],
])("%s", (_, state, observed, step) => {
  const { kind, ...more } = plan(state, undefined, observed);
  if ("ms" in more && "ms" in step) expect(more.ms).toBeCloseTo(step.ms as number, 0);
  else expect({ kind, ...more }).toEqual(step);
});

test("without a Secret what is shown is kept beside the next, while it is valid", () => {
  expect(plan(undefined, old, at(10))).toEqual({ kind: "issue", keep: old });
  expect(plan(undefined, old, at(91))).toEqual({ kind: "issue", keep: undefined });
});
