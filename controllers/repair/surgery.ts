import type { Log } from "../../cni/log";
import type { ApiResponse, Transport } from "../../kubernetes/client";
import type { Clock } from "../clock";
import { eventAbout, eventsPath, type Tiding } from "../events";
import type { Instruments } from "./instruments";
import { CONTROLLER } from "./memory";
import type { Ward } from "./roster";

/** How a deletion ended: `gone` where the pod was not there any more, `held` where it may not go just now. */
export type Outcome = "deleted" | "gone" | "held" | "failed";

interface Tools {
  readonly send: Transport;
  readonly clock: Clock;
  readonly log: Log;
  readonly instruments: Instruments;
  /** This pod's name. */
  readonly reporter: string;
}

const DEADLINE_MS = 5_000;
const NOT_FOUND = 404;
/** The pod of that name has another UID. */
const CONFLICT = 409;
/** A PodDisruptionBudget lets no pod go at present. */
const TOO_MANY_REQUESTS = 429;

/** What a request ended in; without a response where none came. */
interface Sent {
  readonly response?: ApiResponse;
  readonly problem?: string;
  readonly timedOut: boolean;
  readonly seconds: number;
}

const succeeded = (status: number) => status >= 200 && status < 300;

/** Acts on pods by the API server. */
export class Surgery {
  private published = 0;

  constructor(private readonly tools: Tools) {}

  /** Deletes this very pod, and none that took its name since; one that serves only as its budgets allow. */
  async delete(ward: Ward): Promise<Outcome> {
    const { instruments } = this.tools;
    const evicts = ward.diagnosis !== "failed";
    const sent = await (evicts ? this.evict(ward) : this.remove(ward));
    const status = sent.response?.status ?? 0;
    if (succeeded(status)) {
      instruments.deleted.inc();
      instruments.deleteSeconds.observe(sent.seconds);
      return "deleted";
    }
    if (status === NOT_FOUND || status === CONFLICT) return "gone";
    return evicts && status === TOO_MANY_REQUESTS ? this.held(ward, sent) : this.failed(ward, sent);
  }

  /** Publishes an Event about a pod; one that fails is counted and logged, nothing more. */
  async publish(ward: Ward, tiding: Tiding): Promise<void> {
    const { instruments, log } = this.tools;
    const sent = await this.send(eventsPath(ward.namespace), "POST", this.event(ward, tiding));
    if (succeeded(sent.response?.status ?? 0)) return instruments.publishSeconds.observe(sent.seconds);
    (sent.timedOut ? instruments.publishTimeouts : instruments.publishErrors).inc();
    const problem = sent.problem ?? describe(sent.response);
    log.warn(`Event ${tiding.reason} on pod ${ward.namespace}/${ward.name} could not be published: ${problem}`);
  }

  /** Without grace: nothing in it works. */
  private remove(ward: Ward): Promise<Sent> {
    return this.send(podPath(ward), "DELETE", {
      apiVersion: "v1",
      kind: "DeleteOptions",
      gracePeriodSeconds: 0,
      preconditions: { uid: ward.uid },
    });
  }

  /** It ends as it wishes: its volumes may not be taken over before. */
  private evict(ward: Ward): Promise<Sent> {
    const { namespace, name, uid } = ward;
    return this.send(`${podPath(ward)}/eviction`, "POST", {
      apiVersion: "policy/v1",
      kind: "Eviction",
      metadata: { namespace, name },
      deleteOptions: { preconditions: { uid } },
    });
  }

  private held(ward: Ward, { response }: Sent): Outcome {
    const level = ward.attempts === 0 ? "info" : "debug";
    this.tools.log[level](`pod ${ward.namespace}/${ward.name} may not be evicted now: ${describe(response)}`);
    return "held";
  }

  private failed(ward: Ward, { problem, response, timedOut }: Sent): Outcome {
    const { instruments, log } = this.tools;
    (timedOut ? instruments.deleteTimeouts : instruments.deleteErrors).inc();
    log.warn(`pod ${ward.namespace}/${ward.name} could not be deleted: ${problem ?? describe(response)}`);
    return "failed";
  }

  private event(ward: Ward, tiding: Tiding): object {
    const date = this.tools.clock.date();
    const { namespace, name, uid, controller } = ward;
    this.published += 1;
    const reporter = { controller: CONTROLLER, instance: this.tools.reporter, date };
    const suffix = `${date.getTime().toString(16)}${this.published.toString(16)}`;
    return {
      ...eventAbout({ apiVersion: "v1", kind: "Pod", namespace, name, uid }, tiding, reporter, suffix),
      ...(controller === undefined ? {} : { related: related(namespace, controller) }),
    };
  }

  private async send(path: string, method: "DELETE" | "POST", body: object): Promise<Sent> {
    const { clock, send } = this.tools;
    const start = clock.now();
    const spent = () => clock.now() - start;
    try {
      const response = await send({ method, path, body, deadlineMs: DEADLINE_MS });
      return { response, timedOut: false, seconds: spent() / 1000 };
    } catch (error) {
      const problem = error instanceof Error ? error.message : String(error);
      return { problem, timedOut: spent() >= DEADLINE_MS, seconds: spent() / 1000 };
    }
  }
}

const podPath = ({ namespace, name }: Ward) => `/api/v1/namespaces/${namespace}/pods/${name}`;

function related(namespace: string, owner: NonNullable<Ward["controller"]>): object {
  const { apiVersion, kind, name, uid } = owner;
  return { apiVersion, kind, namespace, name, uid };
}

function describe(response: ApiResponse | undefined): string {
  return `${response?.status}: ${response?.body.slice(0, 300)}`;
}
