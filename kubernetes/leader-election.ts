import { reasonOf } from "../cni/errors";
import type { Clock } from "../process/clock";
import type { Log } from "../process/log";
import type { KubernetesClient } from "./client";
import { isAlreadyExists, isConflict, isNotFound } from "./errors";
import { microTime } from "./events";
import { resources } from "./resources";
import type { LeaseObject, LeaseSpec } from "./types";

/** A spec, and when it was first seen by our clock. Our clock is never compared with times written by others. */
interface Sighting {
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

/** Whether this process may write. */
export interface Leadership {
  readonly leading: boolean;
}

interface LeaderElectionOptions {
  /** Name of the Lease. */
  readonly name: string;
  readonly namespace: string;
  /** Unique name of this process. */
  readonly identity: string;
  /** Called when this process begins to lead. */
  readonly elected: () => void;
}

interface LeaderElectionDeps {
  readonly client: KubernetesClient;
  readonly clock: Clock;
  readonly log: Log;
}

/** Time after which others replace a leader that does not renew. */
const DURATION_MS = 15_000;
/** A leader that could not renew for this long stops writing, before another may begin. */
const RENEW_DEADLINE_MS = 10_000;
const RETRY_MS = 2_000;
const JITTER = 0.2;

/** Holds a Lease, or waits for it. */
export class LeaderElection implements Leadership {
  private lease: LeaseObject | undefined;
  private sighting: Sighting | undefined;
  /** When the last successful renewal was sent. */
  private renewedAt: number | undefined;
  private led = false;
  private problem = "";

  constructor(
    private readonly options: LeaderElectionOptions,
    private readonly deps: LeaderElectionDeps,
  ) {}

  /** Becomes false when the lease could not be renewed in time. */
  get leading(): boolean {
    return this.renewedAt !== undefined && this.deps.clock.now() - this.renewedAt < RENEW_DEADLINE_MS;
  }

  /** Tries to lead until the signal is given; then releases the lease. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.deps;
    while (!signal.aborted) {
      const sentAt = clock.now();
      const held = await this.attempt();
      // Leadership may have ended meanwhile; if it begins again, do the skipped work.
      this.announce();
      if (held === true) this.renewedAt = sentAt;
      else if (held === false) this.renewedAt = undefined;
      this.announce();
      await clock.sleep(RETRY_MS * (1 + JITTER * clock.random()), signal);
    }
    if (this.leading) await this.release();
    this.renewedAt = undefined;
  }

  /** Whether this process holds the lease; undefined without an answer. */
  private async attempt(): Promise<boolean | undefined> {
    try {
      const held = await this.hold();
      this.problem = "";
      return held;
    } catch (error) {
      const problem = reasonOf(error);
      if (problem !== this.problem) this.deps.log.warn(problem, this.fields);
      this.problem = problem;
      return undefined;
    }
  }

  /** A leader renews without reading first, which fails only if another replica has written. */
  private async hold(): Promise<boolean> {
    const { clock } = this.deps;
    const { identity, name, namespace } = this.options;
    if (this.leading && this.lease !== undefined && (await this.claim(this.lease))) return true;
    this.lease = await this.deps.client.find(resources.leases, { namespace, name });
    if (this.lease === undefined) return this.claim(undefined);
    this.sighting = sight(this.sighting, this.lease.spec ?? {}, clock.now());
    return mayHold(this.sighting, identity, clock.now()) && this.claim(this.lease);
  }

  /** Creates the lease or takes the one that was read; false if another replica was faster. */
  private async claim(before: LeaseObject | undefined): Promise<boolean> {
    const { client, clock } = this.deps;
    const { identity, name, namespace } = this.options;
    const spec = claimed(before?.spec, { identity, date: clock.date(), durationMs: DURATION_MS });
    const lease = { ...before, metadata: { ...before?.metadata, name, namespace }, spec };
    try {
      this.take(
        await (before === undefined ? client.create(resources.leases, lease) : client.replace(resources.leases, lease)),
      );
      return true;
    } catch (error) {
      if (isConflict(error) || isAlreadyExists(error) || isNotFound(error)) return false;
      throw error;
    }
  }

  private take(lease: LeaseObject): void {
    this.lease = lease;
    this.sighting = sight(this.sighting, lease.spec ?? {}, this.deps.clock.now());
  }

  private async release(): Promise<void> {
    const { client, clock, log } = this.deps;
    const { name, namespace } = this.options;
    const { lease } = this;
    const spec = released(lease?.spec ?? {}, clock.date());
    try {
      await client.replace(resources.leases, { ...lease, metadata: { ...lease?.metadata, name, namespace }, spec });
      log.info("released the lease", this.fields);
    } catch (error) {
      log.warn(`could not release the lease: ${reasonOf(error)}`, this.fields);
    }
  }

  private announce(): void {
    const { elected, identity } = this.options;
    const { log } = this.deps;
    const { leading } = this;
    if (leading === this.led) return;
    this.led = leading;
    const leader = leading ? identity : (this.sighting?.spec.holderIdentity ?? "");
    if (leading) log.info("leads: this process writes from now on", { ...this.fields, leader });
    else log.warn("does not lead any more: this process stops writing", { ...this.fields, leader });
    if (leading) elected();
  }

  private get fields() {
    return { lease: this.options.name };
  }
}
