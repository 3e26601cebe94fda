import type { ObjectMeta } from "../../../kubernetes/types";
import { microTime } from "../../events";

/** Who leads, as a Lease says it. All of this is pure. */

export interface LeaseSpec {
  readonly holderIdentity?: string;
  readonly leaseDurationSeconds?: number;
  readonly acquireTime?: string;
  readonly renewTime?: string;
  readonly leaseTransitions?: number;
}

export interface LeaseObject {
  readonly metadata?: ObjectMeta;
  readonly spec?: LeaseSpec;
}

/** A spec, and when by the own clock it was first seen so: what others write about time is never compared with it. */
export interface Sighting {
  readonly spec: LeaseSpec;
  /** Milliseconds of a clock that never goes back. */
  readonly since: number;
}

/** Takes in what was read: a lease that has changed is a lease that was renewed now. */
export function sight(before: Sighting | undefined, spec: LeaseSpec, now: number): Sighting {
  return before !== undefined && sameSpec(before.spec, spec) ? before : { spec, since: now };
}

const MEMBERS = ["holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions"] as const;
const sameSpec = (one: LeaseSpec, other: LeaseSpec) => MEMBERS.every((member) => one[member] === other[member]);

/** Whether the lease is free, expired, or already one's own. */
export function mayHold({ spec, since }: Sighting, identity: string, now: number): boolean {
  const { holderIdentity = "", leaseDurationSeconds = 0 } = spec;
  return holderIdentity === "" || holderIdentity === identity || now >= since + leaseDurationSeconds * 1_000;
}

/** Who holds a lease, from when, and for how long. */
export interface Claim {
  readonly identity: string;
  readonly date: Date;
  readonly durationMs: number;
}

/** The lease taken, or renewed where it is one's own. */
export function claimed(spec: LeaseSpec | undefined, { identity, date, durationMs }: Claim): LeaseSpec {
  const time = microTime(date);
  const renewal = { holderIdentity: identity, leaseDurationSeconds: Math.ceil(durationMs / 1_000), renewTime: time };
  if (spec === undefined) return { ...renewal, acquireTime: time, leaseTransitions: 0 };
  if (spec.holderIdentity === identity) return { ...spec, ...renewal };
  return { ...renewal, acquireTime: time, leaseTransitions: (spec.leaseTransitions ?? 0) + 1 };
}

/** The lease given back, so that nobody has to wait for its end. */
export function released(spec: LeaseSpec, date: Date): LeaseSpec {
  const time = microTime(date);
  return { ...spec, holderIdentity: "", leaseDurationSeconds: 1, acquireTime: time, renewTime: time };
}
