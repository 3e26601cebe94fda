import { ErrorCode } from "../../cni/errors";
import type { Log } from "../../cni/log";
import type { Transport } from "../../kubernetes/client";
import type { PodObject } from "../../kubernetes/types";

/** What a line of the plugin's log has to say to whoever looks at the pod. */
export interface PodEvent {
  readonly namespace: string;
  readonly name: string;
  readonly reason: Reason;
  readonly note: string;
}

type Reason = "LinkerdCNIRedirectFailed" | "LinkerdCNIConfigInvalid" | "LinkerdCNIApiUnreachable";

/** Errors that say more than that the redirect failed. */
const REASONS: Readonly<Record<number, Reason>> = {
  [ErrorCode.config]: "LinkerdCNIConfigInvalid",
  [ErrorCode.tryAgainLater]: "LinkerdCNIApiUnreachable",
};

type Entry = Readonly<Record<string, unknown>>;

function content({ code, decision, error, reason }: Entry): Pick<PodEvent, "reason" | "note"> | undefined {
  if (typeof code === "number") return { reason: REASONS[code] ?? "LinkerdCNIRedirectFailed", note: String(error) };
  if (decision !== "redirect" || typeof reason !== "string") return undefined;
  return { reason: "LinkerdCNIApiUnreachable", note: `Redirected by the pod's annotations alone: ${reason}` };
}

/** The Event for one call of the plugin, where it failed to start a pod as it should, or had to fall back. */
export function eventOf(entry: Entry): PodEvent | undefined {
  const { pod, verb } = entry;
  if (verb !== "ADD" || typeof pod !== "string") return undefined;
  const [namespace = "", name = ""] = pod.split("/");
  const found = content(entry);
  return found === undefined || name === "" ? undefined : { namespace, name, ...found };
}

interface Tools {
  readonly connect: () => Transport & { close(): void };
  /** This installer, and where it runs. */
  readonly instance: string;
  readonly log: Log;
  readonly now: () => Date;
}

/** The kubelet tries a pod again every few seconds: what was said stays said for so long. */
const SAID_MS = 10 * 60_000;
const MOST_WAITING = 100;
const MOST_AT_ONCE = 10;
const DEADLINE_MS = 3_000;
const MAX_NOTE = 1_000;

/** Publishes Events about pods: each once in ten minutes, and few at a time. */
export class PodEvents {
  private readonly waiting = new Map<string, PodEvent>();
  private readonly said = new Map<string, number>();
  private busy = false;
  private published = 0;

  constructor(private readonly tools: Tools) {}

  /** Takes a line of the plugin's log. */
  take(entry: Entry): void {
    const event = eventOf(entry);
    if (event === undefined || this.waiting.size >= MOST_WAITING) return;
    const key = `${event.namespace}/${event.name} ${event.reason}`;
    if (!this.said.has(key)) this.waiting.set(key, event);
  }

  /** Publishes some of what waits; called every few seconds. */
  async publish(): Promise<void> {
    this.forget();
    if (this.busy || this.waiting.size === 0) return;
    this.busy = true;
    try {
      await this.publishSome();
    } catch (error) {
      this.tools.log.debug(`Events wait: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      this.busy = false;
    }
  }

  private forget(): void {
    const now = this.tools.now().getTime();
    for (const [key, at] of this.said) if (now - at >= SAID_MS) this.said.delete(key);
  }

  private async publishSome(): Promise<void> {
    const send = this.tools.connect();
    try {
      for (const [key, event] of [...this.waiting].slice(0, MOST_AT_ONCE)) {
        await this.publishOne(send, event);
        this.waiting.delete(key);
        this.said.set(key, this.tools.now().getTime());
      }
    } finally {
      send.close();
    }
  }

  /** A refusal is logged and not repeated; where no answer comes, this throws, and the Event waits. */
  private async publishOne(send: Transport, event: PodEvent): Promise<void> {
    const { namespace, name, reason } = event;
    const found = await send({ path: `/api/v1/namespaces/${namespace}/pods/${name}`, deadlineMs: DEADLINE_MS });
    if (found.status !== 200) return;
    const uid = (JSON.parse(found.body) as PodObject).metadata?.uid;
    const path = `/apis/events.k8s.io/v1/namespaces/${namespace}/events`;
    const body = this.body(event, uid);
    const { status } = await send({ method: "POST", path, body, deadlineMs: DEADLINE_MS });
    if (status >= 300) this.tools.log.warn(`Event ${reason} on pod ${namespace}/${name} was refused: ${status}`);
  }

  private body({ namespace, name, reason, note }: PodEvent, uid: string | undefined): object {
    const { instance, now } = this.tools;
    const time = now();
    this.published += 1;
    const suffix = `${time.getTime().toString(16)}${this.published.toString(16)}`;
    return {
      apiVersion: "events.k8s.io/v1",
      kind: "Event",
      metadata: { name: `${name.slice(0, 230)}.${suffix}`, namespace },
      // Kubernetes' MicroTime has six digits.
      eventTime: time.toISOString().replace("Z", "000Z"),
      reportingController: "linkerd-cni",
      reportingInstance: instance.slice(0, 128),
      type: "Warning",
      action: "Redirecting",
      reason,
      note: note.slice(0, MAX_NOTE),
      regarding: { apiVersion: "v1", kind: "Pod", namespace, name, ...(uid === undefined ? {} : { uid }) },
    };
  }
}
