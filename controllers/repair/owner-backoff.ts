/** Limits of replacing the pods of one owner without success. All times are milliseconds. */
interface OwnerBackoffPolicy {
  /** Rounds of deletions before the owner is suspended for the first time. */
  readonly rounds: number;
  /** The first suspension. Each later one lasts twice as long as the previous one. */
  readonly firstMs: number;
  readonly longestMs: number;
  /** An owner without broken pods for this long is forgotten. */
  readonly forgetMs: number;
}

const MINUTE = 60_000;

export const OWNER_BACKOFF: OwnerBackoffPolicy = {
  rounds: 3,
  firstMs: 5 * MINUTE,
  longestMs: 60 * MINUTE,
  forgetMs: 30 * MINUTE,
};

/** Whether a broken pod may be deleted, by its owner's back-off. */
export type Permission =
  | { readonly kind: "delete" }
  /** Its owner is suspended for this many more milliseconds. */
  | { readonly kind: "wait"; readonly ms: number }
  /** Its owner has used up its rounds and must be suspended. */
  | { readonly kind: "suspend"; readonly rounds: number; readonly ms: number };

interface Entry {
  /** Rounds of deletions so far. A round is every pod that existed when its first pod was deleted. */
  readonly rounds: number;
  /** When the first pod of the last round was deleted. */
  readonly roundAt: number;
  readonly suspensions: number;
  /** The end of the last suspension. */
  readonly until: number;
}

const DELETE: Permission = { kind: "delete" };
const NEVER = Number.NEGATIVE_INFINITY;
const NEW: Entry = { rounds: 0, roundAt: NEVER, suspensions: 0, until: NEVER };

/**
 * Back-off of deletions for each owner of pods, kept in memory: after a few rounds without success the owner is
 * suspended, and after each suspension it gets one more round.
 *
 * Times come from a monotonic clock. A pod's `firstSeen` tells the pods of a round from those that replaced them.
 */
export class OwnerBackoff {
  private readonly entries = new Map<string, Entry>();

  constructor(private readonly policy: OwnerBackoffPolicy) {}

  /** Whether a broken pod of an owner may be deleted now. */
  ask(owner: string, firstSeen: number, now: number): Permission {
    const entry = this.find(owner, now);
    const { rounds, suspensions, until } = entry;
    if (now < until) return { kind: "wait", ms: until - now };
    if (isOfRound(entry, firstSeen) || rounds < this.policy.rounds + suspensions) return DELETE;
    return { kind: "suspend", rounds, ms: this.suspension(suspensions) };
  }

  /** Records that a pod was deleted, or may have been. */
  recordDeletion(owner: string, firstSeen: number, now: number): void {
    const entry = this.find(owner, now);
    if (isOfRound(entry, firstSeen)) return;
    this.forget(now);
    this.entries.set(owner, { ...entry, rounds: entry.rounds + 1, roundAt: now });
  }

  /**
   * Records that a pod of the owner works. If it is newer than the last round, replacing pods helps, and the owner's
   * back-off is reset. @returns whether it was reset
   */
  recordSuccess(owner: string, firstSeen: number): boolean {
    const entry = this.entries.get(owner);
    return entry !== undefined && firstSeen > entry.roundAt && this.entries.delete(owner);
  }

  /** Suspends an owner. */
  suspend(owner: string, now: number): void {
    const entry = this.find(owner, now);
    const { suspensions } = entry;
    const until = now + this.suspension(suspensions);
    this.entries.set(owner, { ...entry, suspensions: suspensions + 1, until });
  }

  /** Number of suspended owners. */
  suspended(now: number): number {
    return [...this.entries.values()].filter(({ until }) => now < until).length;
  }

  private find(owner: string, now: number): Entry {
    const entry = this.entries.get(owner) ?? NEW;
    return this.isOver(entry, now) ? NEW : entry;
  }

  private isOver({ roundAt, until }: Entry, now: number): boolean {
    return now - Math.max(roundAt, until) >= this.policy.forgetMs;
  }

  private forget(now: number): void {
    for (const [owner, entry] of this.entries) if (this.isOver(entry, now)) this.entries.delete(owner);
  }

  private suspension(before: number): number {
    return Math.min(this.policy.firstMs * 2 ** before, this.policy.longestMs);
  }
}

/** Whether a pod existed when the last round began, and that round was not ended by a suspension. */
const isOfRound = ({ roundAt, until }: Entry, firstSeen: number): boolean => firstSeen <= roundAt && until <= roundAt;
