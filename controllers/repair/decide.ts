import type { Bucket } from "../bucket";
import type { Breakers } from "./breaker";
import type { Ward } from "./roster";

/** What to do next. */
export type Step =
  | { readonly kind: "delete"; readonly ward: Ward }
  /** Its owner is left alone from now on, for a while. */
  | {
      readonly kind: "suspend";
      readonly ward: Ward;
      readonly rounds: number;
      readonly helped: number;
      readonly openings: number;
      readonly waitMs: number;
    }
  /** Nothing can be done before a time, or before something changes. */
  | { readonly kind: "rest"; readonly ms: number };

/** What a decision rests on, besides the pods. */
export interface Limits {
  readonly breakers: Breakers;
  readonly bucket: Bucket;
  readonly deleteUnvalidated: boolean;
}

/** Whether a pod has to go; one that serves only where something brings it back. */
export function isBroken(ward: Ward, deleteUnvalidated: boolean): boolean {
  const { controller, diagnosis, redirect, deleted } = ward;
  if (deleted) return false;
  if (diagnosis === "failed") return true;
  return deleteUnvalidated && controller !== undefined && diagnosis === "unvalidated" && redirect === "absent";
}

const hasFailed = ({ diagnosis }: Ward): boolean => diagnosis === "failed";

/** What comes next for one broken pod. */
function stepFor(ward: Ward, { breakers, bucket }: Limits, now: number): Step {
  const permission = breakers.ask(ward.owner, ward.firstSeen, now);
  // A pod that could not be deleted gives no cause for anything before its next attempt.
  if (permission.kind === "open" && ward.retryAt <= now) return { ...permission, kind: "suspend", ward };
  const patience = permission.kind === "wait" ? permission.waitMs : 0;
  const ms = Math.max(patience, ward.retryAt - now, bucket.wait(now));
  return ms > 0 ? { kind: "rest", ms } : { kind: "delete", ward };
}

/** Decides what comes next, first for pods that serve nothing. No I/O; the time is given. */
export function decide(wards: Iterable<Ward>, limits: Limits, now: number): Step {
  let rest = Number.POSITIVE_INFINITY;
  const broken = [...wards].filter((ward) => isBroken(ward, limits.deleteUnvalidated));
  const [failed, serving] = [broken.filter(hasFailed), broken.filter((ward) => !hasFailed(ward))];
  for (const ward of [...failed, ...serving]) {
    const step = stepFor(ward, limits, now);
    if (step.kind !== "rest") return step;
    rest = Math.min(rest, step.ms);
  }
  return { kind: "rest", ms: rest };
}

const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 60_000;

/** When to try again what has failed so many times. */
export function retryAfter(attempts: number): number {
  return Math.min(FIRST_RETRY_MS * 2 ** (attempts - 1), LONGEST_RETRY_MS);
}
