import type { Log } from "../../cni/log";
import type { ApiResponse, Transport } from "../../kubernetes/client";
import type { Clock } from "../clock";
import type { Instruments } from "./instruments";
import type { Ward } from "./roster";

/** How a deletion ended: `gone` where the pod was not there any more. */
export type Outcome = "deleted" | "gone" | "failed";

/** Something told about a pod. */
export interface Tiding {
  readonly reason: string;
  readonly action: string;
  readonly type: "Normal" | "Warning";
  readonly note: string;
}

interface Tools {
  readonly send: Transport;
  readonly clock: Clock;
  readonly log: Log;
  readonly instruments: Instruments;
  /** This pod's name. */
  readonly reporter: string;
}

const CONTROLLER = "linkerd-cni-repair-controller";
const DEADLINE_MS = 5_000;
const NOT_FOUND = 404;
/** The pod of that name has another UID. */
const CONFLICT = 409;

/** What a request ended in; without a response where none came. */
interface Sent {
  readonly response?: ApiResponse;
  readonly problem?: string;
  readonly timedOut: boolean;
  readonly seconds: number;
}

const succeeded = (status: number) => status >= 200 && status < 300;
/** The API takes names of at most 253 bytes. */
const eventName = (ward: Ward, suffix: string) => `${ward.name.slice(0, 230)}.${suffix}`;

/** Acts on pods by the API server. */
export class Surgery {
  private published = 0;

  constructor(private readonly tools: Tools) {}

  /** Deletes this very pod, and none that took its name since; without grace, for nothing in it works. */
  async delete(ward: Ward): Promise<Outcome> {
    const { instruments, log } = this.tools;
    const sent = await this.send(`/api/v1/namespaces/${ward.namespace}/pods/${ward.name}`, "DELETE", {
      apiVersion: "v1",
      kind: "DeleteOptions",
      gracePeriodSeconds: 0,
      preconditions: { uid: ward.uid },
    });
    const status = sent.response?.status ?? 0;
    if (succeeded(status)) {
      instruments.deleted.inc();
      instruments.deleteSeconds.observe(sent.seconds);
      return "deleted";
    }
    if (status === NOT_FOUND || status === CONFLICT) return "gone";
    (sent.timedOut ? instruments.deleteTimeouts : instruments.deleteErrors).inc();
    log.warn(`pod ${ward.namespace}/${ward.name} could not be deleted: ${sent.problem ?? describe(sent.response)}`);
    return "failed";
  }

  /** Publishes an Event about a pod; one that fails is counted and logged, nothing more. */
  async publish(ward: Ward, tiding: Tiding): Promise<void> {
    const { instruments, log } = this.tools;
    const path = `/apis/events.k8s.io/v1/namespaces/${ward.namespace}/events`;
    const sent = await this.send(path, "POST", this.event(ward, tiding));
    if (succeeded(sent.response?.status ?? 0)) return instruments.publishSeconds.observe(sent.seconds);
    (sent.timedOut ? instruments.publishTimeouts : instruments.publishErrors).inc();
    const problem = sent.problem ?? describe(sent.response);
    log.warn(`Event ${tiding.reason} on pod ${ward.namespace}/${ward.name} could not be published: ${problem}`);
  }

  private event(ward: Ward, tiding: Tiding): object {
    const { clock, reporter } = this.tools;
    const now = clock.date();
    const { controller } = ward;
    this.published += 1;
    return {
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      metadata: {
        name: eventName(ward, `${now.getTime().toString(16)}${this.published.toString(16)}`),
        namespace: ward.namespace,
      },
      // Kubernetes' MicroTime has six digits.
      eventTime: now.toISOString().replace("Z", "000Z"),
      reportingController: CONTROLLER,
      reportingInstance: reporter,
      ...tiding,
      regarding: { apiVersion: "v1", kind: "Pod", namespace: ward.namespace, name: ward.name, uid: ward.uid },
      ...(controller === undefined ? {} : { related: related(ward.namespace, controller) }),
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

function related(namespace: string, owner: NonNullable<Ward["controller"]>): object {
  const { apiVersion, kind, name, uid } = owner;
  return { apiVersion, kind, namespace, name, uid };
}

function describe(response: ApiResponse | undefined): string {
  return `${response?.status}: ${response?.body.slice(0, 300)}`;
}
