import type { Log } from "../../cni/log";
import type { Transport } from "../../kubernetes/client";
import type { Clock } from "../clock";
import { eventsPath } from "../events";
import type { Past } from "./breaker";
import type { Ward } from "./roster";

/** Who says the Events of this controller. */
export const CONTROLLER = "linkerd-cni-repair-controller";

/** What an Event holds beyond its text, so that every node, and a controller that starts anew, knows of it. */
const ROUND = "linkerd.io/cni-repair-round";
const OPENINGS = "linkerd.io/cni-repair-openings";
const UNTIL = "linkerd.io/cni-repair-until";

type Annotations = Readonly<Record<string, string>>;

/** For the Event of a deletion: in which of its owner's rounds it was. */
export const noteRound = (round: number): Annotations => ({ [ROUND]: String(round) });

/** For the Event of an opened breaker: after how many rounds, for which time, until when. */
export const noteOpening = (rounds: number, openings: number, until: Date): Annotations => ({
  ...noteRound(rounds),
  [OPENINGS]: String(openings),
  [UNTIL]: until.toISOString(),
});

/** An Event, as far as it is of use here. */
export interface Told {
  readonly metadata?: { readonly annotations?: Annotations; readonly creationTimestamp?: string };
  readonly related?: { readonly uid?: string };
}

/** An Event is published right after the deletion, and a new pod may be there before it. */
const SLACK_MS = 2_000;

const numberIn = ({ metadata }: Told, key: string): number => Number(metadata?.annotations?.[key] ?? 0);
const timeIn = (text: string | undefined): number => Date.parse(text ?? "") || 0;
const most = (numbers: readonly number[]): number => Math.max(0, ...numbers);

/**
 * What Events say about an owner, to one of its pods: of rounds, only those after whose beginning it was created.
 * Creation times are the API server's, all by one clock.
 */
export function recollect(events: readonly Told[], { owner, created }: Pick<Ward, "owner" | "created">): Past {
  const own = events.filter(({ related, metadata }) => related?.uid === owner && metadata?.annotations?.[ROUND]);
  const openings = own.filter((event) => numberIn(event, OPENINGS) > 0);
  const before = own.filter(
    (event) => !openings.includes(event) && timeIn(event.metadata?.creationTimestamp) <= created + SLACK_MS,
  );
  const rounds = most(before.map((event) => numberIn(event, ROUND)));
  return {
    rounds,
    openings: most(openings.map((event) => numberIn(event, OPENINGS))),
    until: most(openings.map(({ metadata }) => timeIn(metadata?.annotations?.[UNTIL]))),
    at: most(own.map(({ metadata }) => timeIn(metadata?.creationTimestamp))),
    trial: openings.some((event) => numberIn(event, ROUND) >= rounds),
  };
}

interface Tools {
  readonly send: Transport;
  readonly clock: Clock;
  readonly log: Log;
}

/** One list serves all pods of a namespace that were there when it was read, for so long. */
const FRESH_MS = 5_000;
const DEADLINE_MS = 5_000;

/** What all repair controllers together have done, as their Events tell it. */
export class Memory {
  private readonly read = new Map<string, { readonly at: number; readonly events: readonly Told[] }>();
  private refused = false;

  constructor(private readonly tools: Tools) {}

  /** Without a controller nothing brings a pod back; undefined also where nothing could be read. */
  async recall(ward: Ward): Promise<Past | undefined> {
    if (ward.controller === undefined) return undefined;
    const events = await this.events(ward);
    return events && recollect(events, ward);
  }

  private async events({ namespace, firstSeen }: Ward): Promise<readonly Told[] | undefined> {
    const now = this.tools.clock.now();
    for (const [name, { at }] of this.read) if (now - at >= FRESH_MS) this.read.delete(name);
    const known = this.read.get(namespace);
    if (known !== undefined && known.at >= firstSeen) return known.events;
    try {
      const events = await this.list(namespace);
      this.read.set(namespace, { at: now, events });
      this.refused = false;
      return events;
    } catch (error) {
      if (!this.refused) this.tools.log.warn(`${(error as Error).message}: only this node's rounds are counted`);
      this.refused = true;
      return undefined;
    }
  }

  private async list(namespace: string): Promise<readonly Told[]> {
    const query = new URLSearchParams({ fieldSelector: `reportingController=${CONTROLLER}` });
    const path = `${eventsPath(namespace)}?${query}`;
    const { status, body } = await this.tools.send({ path, deadlineMs: DEADLINE_MS });
    if (status !== 200) throw new Error(`Events of namespace ${namespace}: ${status}`);
    return (JSON.parse(body) as { items?: readonly Told[] }).items ?? [];
  }
}
