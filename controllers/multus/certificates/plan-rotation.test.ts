import type { Authority, ServingCertificate } from "./certificate";
import { planRotation, type RotationState, type RotationStep } from "./plan-rotation";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;
const SETTLE = 300_000;
const VALID = 90 * HOUR;

const authority = (name: string, validFrom = 0, validTo = 10 * YEAR): Authority => ({
  ...{ cert: `${name}.ca`, key: `${name}.ca-key` },
  ...{ validFrom, validTo },
});
const serving = (by: string, validFrom = 0, validTo = validFrom + VALID): ServingCertificate => ({
  ...{ cert: `${by}.crt`, key: `${by}.key`, ca: `${by}.ca` },
  ...{ validFrom, validTo },
});
const at = (hours: number, settledMs = 0) => ({ now: hours * HOUR, validMs: VALID, settledMs, settleMs: SETTLE });

const [old, next] = [authority("old"), authority("next")];
const ending = authority("old", 0, 100 * HOUR);
const own = { serving: serving("own"), trusted: ["own.ca"], signer: undefined };
const usual: RotationState = { serving: serving("old"), trusted: [old.cert], signer: old };
const both = { serving: serving("old"), trusted: [old.cert, next.cert], signer: next };

test.each<readonly [string, RotationState | undefined, ReturnType<typeof at>, RotationStep]>([
  ["waits for two thirds of the lifetime", usual, at(10), { kind: "wait", ms: 50 * HOUR }],
  ["renews by the same authority then, at once", usual, at(60), { kind: "renew", signer: old }],
  ["renews an expired certificate at once", usual, at(91), { kind: "renew", signer: old }],
  [
    "renews a certificate that is not valid yet at once",
    { ...usual, serving: serving("old", 20 * HOUR) },
    at(10),
    { kind: "renew", signer: old },
  ],
  // An authority that ends before what it would sign.
  ["adds an authority", { ...usual, signer: ending }, at(60), { kind: "add-authority", serving: usual.serving }],
  ["waits until clients trust it", both, at(60, 100_000), { kind: "wait", ms: 200_000 }],
  ["renews by it then", both, at(60, SETTLE), { kind: "renew", signer: next }],
  [
    "renews by it before the old one is due, as after the Secret was deleted",
    both,
    at(10, SETTLE),
    { kind: "renew", signer: next },
  ],
  ["waits until all serve that", { ...both, serving: serving("next") }, at(10, 299_000), { kind: "wait", ms: 1_000 }],
  [
    "drops the old authority then",
    { ...both, serving: serving("next") },
    at(10, SETTLE),
    { kind: "drop-authorities", serving: serving("next"), signer: next },
  ],
  ["does not wait with an expired one", both, at(91), { kind: "renew", signer: next }],
  // A user's own certificate.
  ["keeps one with an unknown key", own, at(10), { kind: "wait", ms: 50 * HOUR }],
  ["adds an authority when it is due", own, at(60), { kind: "add-authority", serving: own.serving }],
  ["replaces it when it has expired", own, at(91), { kind: "create" }],
  ["replaces both when both have expired", { ...usual, signer: ending }, at(101), { kind: "create" }],
  ["no Secret", undefined, at(10), { kind: "create" }],
])("%s", (_, state, observed, step) => {
  const planned = planRotation(state, undefined, observed);
  if (planned.kind === "wait" && step.kind === "wait") expect(planned.ms).toBeCloseTo(step.ms, 0);
  else expect(planned).toEqual(step);
});

test("without a Secret the served certificate stays beside another authority, while it is valid", () => {
  expect(planRotation(undefined, own.serving, at(10))).toEqual({ kind: "add-authority", serving: own.serving });
  expect(planRotation(undefined, own.serving, at(91))).toEqual({ kind: "create" });
});

/** Carries steps out for some years from a state; time passes as the plan says. */
function rotate(from: RotationState | undefined, years: number) {
  const validMs = 90 * DAY;
  let [state, now, settledSince, made] = [from, 0, 0, 0];
  const counts: Record<string, number> = {};
  const make = () => authority(`made-${made++}`, now, now + 10 * YEAR);
  const settled = () => {
    settledSince = now;
  };
  /** When clients were told of each authority. */
  const told = new Map<string, number>((from?.trusted ?? []).map((pem) => [pem, Number.NEGATIVE_INFINITY]));
  const carryOut = (step: RotationStep): RotationState => {
    const { trusted = [], signer } = state ?? {};
    if (step.kind === "renew") {
      const served = serving(step.signer.cert.replace(".ca", ""), now, now + validMs);
      // No client ever sees what it has not been told to trust for long enough.
      expect(now - (told.get(served.ca) ?? now)).toBeGreaterThanOrEqual(SETTLE);
      return { serving: served, trusted, signer };
    }
    if (step.kind === "drop-authorities") return { serving: step.serving, trusted: [step.serving.ca], signer };
    const created = make();
    told.set(created.cert, state === undefined ? Number.NEGATIVE_INFINITY : now);
    const served =
      step.kind === "add-authority" ? step.serving : serving(created.cert.replace(".ca", ""), now, now + validMs);
    return { serving: served, trusted: [...trusted, created.cert], signer: created };
  };
  while (now < years * YEAR) {
    const step = planRotation(state, state?.serving, { now, validMs, settledMs: now - settledSince, settleMs: SETTLE });
    counts[step.kind] = (counts[step.kind] ?? 0) + 1;
    if (step.kind === "wait") {
      expect(step.ms).toBeGreaterThan(0);
      now += step.ms;
    } else {
      state = carryOut(step);
      settled();
    }
    expect(state?.serving.validTo).toBeGreaterThan(now);
    expect(state?.trusted).toContain(state?.serving.ca);
  }
  return { ...counts, wait: undefined };
}

test("over 25 years the served certificate is always valid and trusted, by three authorities", () => {
  const steps = rotate(undefined, 25);
  expect(steps).toMatchObject({ create: 1, "add-authority": 2, "drop-authorities": 2 });
});

test("a Secret without the authority's key is taken over, and clients never refuse the certificate", () => {
  const given = { serving: serving("given", 0, 90 * DAY), trusted: ["given.ca"], signer: undefined };
  expect(rotate(given, 2)).toMatchObject({ "add-authority": 1, "drop-authorities": 1 });
});
