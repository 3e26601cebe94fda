import { CNI_NAME } from "../../cni/contract";
import { ErrorCode } from "../../cni/errors";
import { KubernetesClient } from "../../kubernetes/client";
import { ApiError } from "../../kubernetes/errors";
import { EventRecorder } from "../../kubernetes/events";
import { resources } from "../../kubernetes/resources";
import type { Transport } from "../../kubernetes/transport";
import type { Log } from "../../process/log";
import { reasonOf } from "../../process/reason-of";

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

interface Deps {
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

/** Publishes Events about pods: each once in ten minutes, and few at a time. */
export class PodEvents {
  private readonly waiting = new Map<string, PodEvent>();
  private readonly said = new Map<string, number>();
  private readonly client: KubernetesClient;
  private readonly recorder: EventRecorder;
  private busy = false;

  constructor(private readonly deps: Deps) {
    const send: Transport = async (call) => {
      const connected = deps.connect();
      try {
        return await connected(call);
      } finally {
        connected.close();
      }
    };
    this.client = new KubernetesClient(send, { deadlineMs: DEADLINE_MS });
    const reporter = { controller: CNI_NAME, instance: deps.instance };
    this.recorder = new EventRecorder(reporter, { client: this.client, clock: { date: deps.now } });
  }

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
      this.deps.log.debug(`Events wait: ${reasonOf(error)}`);
    } finally {
      this.busy = false;
    }
  }

  private forget(): void {
    const now = this.deps.now().getTime();
    for (const [key, at] of this.said) if (now - at >= SAID_MS) this.said.delete(key);
  }

  private async publishSome(): Promise<void> {
    for (const [key, event] of [...this.waiting].slice(0, MOST_AT_ONCE)) {
      await this.publishOne(event);
      this.waiting.delete(key);
      this.said.set(key, this.deps.now().getTime());
    }
  }

  /** A refusal is logged and not repeated; where no answer comes, this throws, and the Event waits. */
  private async publishOne({ namespace, name, reason, note }: PodEvent): Promise<void> {
    const uid = await this.uidOf(namespace, name);
    if (uid === undefined) return;
    try {
      const regarding = { apiVersion: "v1", kind: "Pod", namespace, name, uid };
      await this.recorder.record(regarding, { type: "Warning", reason, action: "Redirecting", note });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      this.deps.log.warn(`Event ${reason} on pod ${namespace}/${name} was refused: ${error.status}`);
    }
  }

  /** Undefined where there is no such pod, or it may not be read. */
  private async uidOf(namespace: string, name: string): Promise<string | undefined> {
    try {
      return (await this.client.get(resources.pods, { namespace, name })).metadata?.uid;
    } catch (error) {
      if (error instanceof ApiError) return undefined;
      throw error;
    }
  }
}
