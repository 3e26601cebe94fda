/** When to stop for an owner whose pods come back broken. All times are milliseconds. */
export interface BreakerPolicy {
  /** Rounds of deletions before it stops. */
  readonly rounds: number;
  /** How long it stops at first; twice as long each further time. */
  readonly pauseMs: number;
  readonly longestPauseMs: number;
  /** A pod that first appears so long after the last round, or pause, is not what came back from it. */
  readonly returnMs: number;
  /** An owner that was left alone for so long is forgotten, with all its rounds. */
  readonly forgetMs: number;
}

export const BREAKER_POLICY: BreakerPolicy = {
  rounds: 3,
  pauseMs: 5 * 60_000,
  longestPauseMs: 60 * 60_000,
  // A pod in a deleted one's place is made at once; a Job waits ever longer.
  returnMs: 5 * 60_000,
  forgetMs: 30 * 60_000,
};

/** What others than this process did about an owner; times are milliseconds since 1970. */
export interface Past {
  /** Rounds that the pod in question came back from. */
  readonly rounds: number;
  /** How many of them have helped: those do not count. */
  readonly helped: number;
  readonly openings: number;
  /** The end of the last pause; 0: there was none. */
  readonly until: number;
  /** When the last thing was done. */
  readonly at: number;
  /** It was opened since the last of these rounds. */
  readonly trial: boolean;
}

/** What may be done about one of an owner's pods. */
export type Permission =
  | { readonly kind: "go" }
  /** The breaker has to be opened, and that be told. */
  | {
      readonly kind: "open";
      readonly rounds: number;
      readonly helped: number;
      readonly openings: number;
      readonly waitMs: number;
    }
  | { readonly kind: "wait"; readonly waitMs: number };

/** A round is the deletion of all pods that were there when its first was deleted. */
interface History {
  /** Those that helped among them, so that every round has a number of its own. */
  readonly rounds: number;
  readonly helped: number;
  readonly roundAt: number;
  readonly openings: number;
  readonly openUntil: number;
  /** It was opened since the last round: when the pause is over there may be one more. */
  readonly trial: boolean;
}

/** By this process' clock, and by the time of day. */
interface Moment {
  /** When the pod was first seen. */
  readonly firstSeen: number;
  readonly now: number;
  /** Milliseconds since 1970. */
  readonly date: number;
}

const GO: Permission = { kind: "go" };

/** One circuit breaker for each owner of pods. */
export class Breakers {
  private readonly histories = new Map<string, History>();

  constructor(private readonly policy: BreakerPolicy) {}

  /** Whether a broken pod that was first seen at a time may be deleted. */
  ask(owner: string, firstSeen: number, now: number): Permission {
    const history = this.find(owner, now, firstSeen);
    if (history === undefined) return GO;
    if (now < history.openUntil) return { kind: "wait", waitMs: history.openUntil - now };
    const { rounds, helped, openings } = history;
    const cameBack = firstSeen > history.roundAt && rounds - helped >= this.policy.rounds;
    if (!cameBack || history.trial) return GO;
    return { kind: "open", rounds, helped, openings: openings + 1, waitMs: this.pause(history) };
  }

  /** Takes in what others did about a pod's owner, unless more is known here. */
  recall(owner: string, past: Past, moment: Moment): void {
    const { firstSeen, now, date } = moment;
    const known = this.find(owner, now, firstSeen);
    const isOld = date - Math.max(past.at, past.until) >= this.policy.forgetMs;
    if (isOld || past.rounds === 0 || past.rounds < (known?.rounds ?? 0)) return;
    // Its end is by the clock of another node.
    const pauseMs = Math.min(past.until - date, this.policy.longestPauseMs);
    this.histories.set(owner, {
      rounds: past.rounds,
      helped: Math.max(past.helped, known?.helped ?? 0),
      // The pod came back from all of them.
      roundAt: firstSeen - 1,
      openings: Math.max(past.openings, known?.openings ?? 0),
      openUntil: Math.max(now + pauseMs, known?.openUntil ?? 0),
      trial: past.trial || (known?.rounds === past.rounds && known.trial),
    });
  }

  /** Takes in that more of what was done about a pod's owner has helped than was known here. */
  correct(owner: string, past: Past, moment: Moment): void {
    this.histories.delete(owner);
    this.recall(owner, past, moment);
  }

  /** Notes that a pod is being deleted. @returns which round that is */
  deleting(owner: string, firstSeen: number, now: number): number {
    const history = this.find(owner, now, firstSeen);
    const { rounds: before = 0, helped = 0, openings = 0, openUntil = 0 } = history ?? {};
    if (history !== undefined && !history.trial && firstSeen <= history.roundAt) return before;
    this.forget(now);
    const rounds = before + 1;
    this.histories.set(owner, { rounds, helped, roundAt: now, openings, openUntil, trial: false });
    return rounds;
  }

  /** Leaves an owner alone for a while. */
  open(owner: string, now: number): void {
    const history = this.histories.get(owner);
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

  /** What counts for a pod that was first seen at a time. */
  private find(owner: string, now: number, firstSeen: number): History | undefined {
    const history = this.histories.get(owner);
    if (history === undefined || this.isStale(history, now)) return undefined;
    const { roundAt, openUntil } = history;
    return firstSeen - Math.max(roundAt, openUntil) > this.policy.returnMs ? undefined : history;
  }

  private isStale({ roundAt, openUntil }: History, now: number): boolean {
    return now - Math.max(roundAt, openUntil) >= this.policy.forgetMs;
  }

  private forget(now: number): void {
    for (const [owner, history] of this.histories) if (this.isStale(history, now)) this.histories.delete(owner);
  }
}
