/** When to stop for an owner whose pods come back broken. All times are milliseconds. */
export interface BreakerPolicy {
  /** Rounds of deletions before it stops. */
  readonly rounds: number;
  /** How long it stops at first; twice as long each further time. */
  readonly pauseMs: number;
  readonly longestPauseMs: number;
  /** An owner that was left alone for so long is forgotten, with all its rounds. */
  readonly forgetMs: number;
}

export const BREAKER_POLICY: BreakerPolicy = {
  rounds: 3,
  pauseMs: 5 * 60_000,
  longestPauseMs: 60 * 60_000,
  forgetMs: 30 * 60_000,
};

/** What may be done about one of an owner's pods. */
export type Permission =
  | { readonly kind: "go" }
  /** The breaker has to be opened, and that be told. */
  | { readonly kind: "open"; readonly rounds: number; readonly waitMs: number }
  | { readonly kind: "wait"; readonly waitMs: number };

/** A round is the deletion of all pods that were there when its first was deleted. */
interface History {
  readonly rounds: number;
  readonly roundAt: number;
  readonly openings: number;
  readonly openUntil: number;
  /** It was opened since the last round: when the pause is over there may be one more. */
  readonly trial: boolean;
}

const GO: Permission = { kind: "go" };

/** One circuit breaker for each owner of pods. */
export class Breakers {
  private readonly histories = new Map<string, History>();

  constructor(private readonly policy: BreakerPolicy) {}

  /** Whether a broken pod that was first seen at a time may be deleted. */
  ask(owner: string, firstSeen: number, now: number): Permission {
    const history = this.find(owner, now);
    if (history === undefined) return GO;
    if (now < history.openUntil) return { kind: "wait", waitMs: history.openUntil - now };
    const cameBack = firstSeen > history.roundAt && history.rounds >= this.policy.rounds;
    return cameBack && !history.trial ? { kind: "open", rounds: history.rounds, waitMs: this.pause(history) } : GO;
  }

  /** Notes that a pod is being deleted. */
  deleting(owner: string, firstSeen: number, now: number): void {
    const history = this.find(owner, now);
    const rounds = (history?.rounds ?? 0) + 1;
    const { openings = 0, openUntil = 0 } = history ?? {};
    if (history !== undefined && !history.trial && firstSeen <= history.roundAt) return;
    this.forget(now);
    this.histories.set(owner, { rounds, roundAt: now, openings, openUntil, trial: false });
  }

  /** Leaves an owner alone for a while. */
  open(owner: string, now: number): void {
    const history = this.find(owner, now);
    if (history === undefined) return;
    const openings = history.openings + 1;
    this.histories.set(owner, { ...history, openings, openUntil: now + this.pause(history), trial: true });
  }

  /** How many owners are left alone at present. */
  openCount(now: number): number {
    return [...this.histories.values()].filter(({ openUntil }) => now < openUntil).length;
  }

  private pause({ openings }: History): number {
    return Math.min(this.policy.pauseMs * 2 ** openings, this.policy.longestPauseMs);
  }

  private find(owner: string, now: number): History | undefined {
    const history = this.histories.get(owner);
    return history === undefined || this.isStale(history, now) ? undefined : history;
  }

  private isStale({ roundAt, openUntil }: History, now: number): boolean {
    return now - Math.max(roundAt, openUntil) >= this.policy.forgetMs;
  }

  private forget(now: number): void {
    for (const [owner, history] of this.histories) if (this.isStale(history, now)) this.histories.delete(owner);
  }
}
