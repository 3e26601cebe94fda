import { microTime } from "./events";
import type { LeaseObject, LeaseSpec } from "./types";

export type { LeaseObject, LeaseSpec };

/** Leader election by a Lease. Everything here is pure. */

/** A spec, and when it was first seen by our clock. Our clock is never compared with times written by others. */
export interface Sighting {
  readonly spec: LeaseSpec;
  /** Milliseconds of a monotonic clock. */
  readonly since: number;
}

/** Notes a read: a changed lease counts as renewed now. */
export function sight(before: Sighting | undefined, spec: LeaseSpec, now: number): Sighting {
  return before !== undefined && sameSpec(before.spec, spec) ? before : { spec, since: now };
}

const MEMBERS = ["holderIdentity", "leaseDurationSeconds", "acquireTime", "renewTime", "leaseTransitions"] as const;
const sameSpec = (one: LeaseSpec, other: LeaseSpec) => MEMBERS.every((member) => one[member] === other[member]);

/** Whether the lease is free, expired, or ours. */
export function mayHold({ spec, since }: Sighting, identity: string, now: number): boolean {
  const { holderIdentity = "", leaseDurationSeconds = 0 } = spec;
  return holderIdentity === "" || holderIdentity === identity || now >= since + leaseDurationSeconds * 1_000;
}

/** The holder of a lease, since when, and for how long. */
interface Claim {
  readonly identity: string;
  readonly date: Date;
  readonly durationMs: number;
}

/** The lease after taking it, or after renewing it if it is ours. */
export function claimed(spec: LeaseSpec | undefined, { identity, date, durationMs }: Claim): LeaseSpec {
  const time = microTime(date);
  const renewal = { holderIdentity: identity, leaseDurationSeconds: Math.ceil(durationMs / 1_000), renewTime: time };
  if (spec === undefined) return { ...renewal, acquireTime: time, leaseTransitions: 0 };
  if (spec.holderIdentity === identity) return { ...spec, ...renewal };
  return { ...renewal, acquireTime: time, leaseTransitions: (spec.leaseTransitions ?? 0) + 1 };
}

/** The released lease, so that replicas need not wait until it expires. */
export function released(spec: LeaseSpec, date: Date): LeaseSpec {
  const time = microTime(date);
  return { ...spec, holderIdentity: "", leaseDurationSeconds: 1, acquireTime: time, renewTime: time };
}
