import type { Past } from "./breaker";
import type { Ward } from "./roster";

/** What an Event holds beyond its text, so that every node, and a controller that starts anew, knows of it. */
const ROUND = "linkerd.io/cni-repair-round";
const NODE = "linkerd.io/cni-repair-node";
const OPENINGS = "linkerd.io/cni-repair-openings";
const UNTIL = "linkerd.io/cni-repair-until";

type Annotations = Readonly<Record<string, string>>;

/** For the Event of a deletion: in which of its owner's rounds it was, and on which node. */
export const noteRound = (round: number, node: string): Annotations => ({ [ROUND]: String(round), [NODE]: node });

/** For the Event of an opened breaker: after how many rounds, for which time, until when. */
export const noteOpening = (rounds: number, node: string, openings: number, until: Date): Annotations => ({
  ...noteRound(rounds, node),
  [OPENINGS]: String(openings),
  [UNTIL]: until.toISOString(),
});

/** An Event, as far as it is of use here. */
export interface Told {
  readonly metadata?: { readonly annotations?: Annotations; readonly creationTimestamp?: string };
  readonly related?: { readonly uid?: string };
}

/** A pod that may have come back. */
export type Returned = Pick<Ward, "owner" | "controller" | "created">;

/** An Event is published right after the deletion, and a new pod may be there before it. */
const SLACK_MS = 2_000;

const numberIn = ({ metadata }: Told, key: string): number => Number(metadata?.annotations?.[key] ?? 0);
const timeIn = (text: string | undefined): number => Date.parse(text ?? "") || 0;
const most = (numbers: readonly number[]): number => Math.max(0, ...numbers);
const timeOf = ({ metadata }: Told): number => timeIn(metadata?.creationTimestamp);
const untilOf = ({ metadata }: Told): number => timeIn(metadata?.annotations?.[UNTIL]);

/** Rounds are numbered on, those that helped as well: the last one's number tells how many there were. */
const lastRound = (events: readonly Told[]): number => most(events.map((event) => numberIn(event, ROUND)));

/** Those since the numbers last began anew. */
function lastCount(events: readonly Told[]): readonly Told[] {
  const start = most(events.filter((event) => numberIn(event, ROUND) === 1).map(timeOf));
  return events.filter((event) => timeOf(event) >= start);
}

/** Whether what became of an owner's pods elsewhere says nothing here: a DaemonSet's come back where they were. */
export const staysOnNode = ({ controller }: Pick<Ward, "controller">): boolean => controller?.kind === "DaemonSet";

export interface Scope {
  /** The pod's node. */
  readonly node: string;
  /** A pod that comes back does so within this time. */
  readonly returnMs: number;
  /** When a pod of the owner's was created that works: what was done before has helped. 0: none is known. */
  readonly helpedAt: number;
}

/**
 * What Events say about an owner, to one of its pods: only of what that pod may have come back from. Creation times are
 * the API server's, all by one clock.
 */
export function recollect(events: readonly Told[], pod: Returned, { node, returnMs, helpedAt }: Scope): Past {
  const own = events.filter(({ metadata: { annotations = {} } = {}, related }) => {
    if (related?.uid !== pod.owner || annotations[ROUND] === undefined) return false;
    return !staysOnNode(pod) || annotations[NODE] === node;
  });
  const recent = own.filter((event) => pod.created <= Math.max(timeOf(event), untilOf(event)) + returnMs);
  const isBefore = (event: Told) => timeOf(event) <= pod.created + SLACK_MS;
  const hasHelped = (event: Told) => timeOf(event) <= helpedAt + SLACK_MS;
  const rounds = lastRound(recent.filter(isBefore));
  const openings = recent.filter((event) => numberIn(event, OPENINGS) > 0 && !hasHelped(event));
  return {
    rounds,
    helped: lastRound(lastCount(own.filter(isBefore)).filter(hasHelped)),
    openings: most(openings.map((event) => numberIn(event, OPENINGS))),
    until: most(openings.map(untilOf)),
    at: most(recent.map(timeOf)),
    trial: openings.some((event) => numberIn(event, ROUND) >= rounds),
  };
}
