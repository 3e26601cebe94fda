import type { Log } from "../../cni/log";
import type { Transport } from "../../kubernetes/client";
import type { Clock } from "../clock";
import { eventsPath } from "../events";
import type { Past } from "./breaker";
import { hasPassed, MESHED_LABEL } from "./diagnose";
import { controllerOf, type Pod } from "./pod";
import { recollect, staysOnNode, type Told } from "./recollect";
import type { Ward } from "./roster";

/** Who says the Events of this controller. */
export const CONTROLLER = "linkerd-cni-repair-controller";

interface Tools {
  readonly send: Transport;
  readonly clock: Clock;
  readonly log: Log;
  /** This controller's. */
  readonly node: string;
  /** A pod that comes back does so within this time. */
  readonly returnMs: number;
}

/** One list serves all pods of a namespace that were there when it was read, for so long. */
const FRESH_MS = 5_000;
const DEADLINE_MS = 5_000;

/** What is listed of a namespace. */
interface Listing<Item, T> {
  readonly what: string;
  readonly path: (namespace: string) => string;
  /** What is kept of the items: of pods, which may be thousands, very little. */
  readonly read: (items: readonly Item[]) => readonly T[];
}

const select = (path: string, query: Readonly<Record<string, string>>) => `${path}?${new URLSearchParams(query)}`;

const EVENTS: Listing<Told, Told> = {
  what: "Events",
  path: (namespace) => select(eventsPath(namespace), { fieldSelector: `reportingController=${CONTROLLER}` }),
  read: (events) => events,
};

/** A pod that works. */
interface GoodPod {
  readonly owner: string | undefined;
  /** Milliseconds since 1970. */
  readonly createdAt: number;
}

const GOOD_PODS: Listing<Pod, GoodPod> = {
  what: "pods",
  path: (namespace) => select(`/api/v1/namespaces/${namespace}/pods`, { labelSelector: MESHED_LABEL }),
  read: (pods) =>
    pods.filter(hasPassed).map((pod) => ({
      owner: controllerOf(pod)?.uid,
      createdAt: Date.parse(pod.metadata?.creationTimestamp ?? "") || 0,
    })),
};

/** What all repair controllers together have done, as their Events tell it. */
export class Memory {
  private readonly read = new Map<string, { readonly at: number; readonly items: readonly unknown[] }>();
  private refused = false;

  constructor(private readonly tools: Tools) {}

  /** Without a controller nothing brings a pod back; undefined also where nothing could be read. */
  async recall(ward: Ward): Promise<Past | undefined> {
    if (ward.controller === undefined) return undefined;
    const events = await this.list(EVENTS, ward);
    return events && this.recollect(events, ward, 0);
  }

  /**
   * How many of so many rounds have helped, where more have than is known: a pod that was created after one of them
   * works. Undefined where none does, or the Events do not tell of all of them.
   */
  async reconsider(ward: Ward, { rounds, helped }: Pick<Past, "rounds" | "helped">): Promise<Past | undefined> {
    if (ward.controller === undefined || staysOnNode(ward)) return undefined;
    const events = await this.list(EVENTS, ward);
    if (events === undefined || this.recollect(events, ward, 0).rounds < rounds) return undefined;
    const pods = (await this.list(GOOD_PODS, ward)) ?? [];
    const own = pods.filter(({ owner }) => owner === ward.owner);
    const helpedAt = Math.max(0, ...own.map(({ createdAt }) => createdAt));
    const past = this.recollect(events, ward, helpedAt);
    return past.helped > helped ? past : undefined;
  }

  private recollect(events: readonly Told[], ward: Ward, helpedAt: number): Past {
    const { node, returnMs } = this.tools;
    return recollect(events, ward, { node, returnMs, helpedAt });
  }

  private async list<Item, T>(
    listing: Listing<Item, T>,
    { namespace, firstSeen }: Ward,
  ): Promise<readonly T[] | undefined> {
    const now = this.tools.clock.now();
    const path = listing.path(namespace);
    for (const [each, { at }] of this.read) if (now - at >= FRESH_MS) this.read.delete(each);
    const known = this.read.get(path);
    if (known !== undefined && known.at >= firstSeen) return known.items as readonly T[];
    try {
      const { status, body } = await this.tools.send({ path, deadlineMs: DEADLINE_MS });
      if (status !== 200) throw new Error(`${listing.what} of namespace ${namespace}: ${status}`);
      const items = listing.read((JSON.parse(body) as { items?: readonly Item[] }).items ?? []);
      this.read.set(path, { at: now, items });
      this.refused = false;
      return items;
    } catch (error) {
      if (!this.refused) this.tools.log.warn(`${(error as Error).message}: only this node's rounds are counted`);
      this.refused = true;
      return undefined;
    }
  }
}
