import { CNI_NAME, NRI_VERB } from "../../cni/contract";
import { ErrorCode, reasonOf } from "../../cni/errors";
import { Backoff, type BackoffPolicy } from "../../kubernetes/backoff";
import { KubernetesClient } from "../../kubernetes/client";
import { ApiError, isTemporary } from "../../kubernetes/errors";
import { EventRecorder, type EventSpec } from "../../kubernetes/events";
import { resources } from "../../kubernetes/resources";
import type { Transport } from "../../kubernetes/transport";
import type { Clock } from "../../process/clock";
import type { Log } from "../../process/log";

/** The Event on a pod, from a line of the log of calls. */
interface PodEvent {
  readonly namespace: string;
  readonly name: string;
  readonly type: EventSpec["type"];
  readonly reason: Reason;
  readonly note: string;
  /** Identifies the occurrence, however often it is read. */
  readonly suffix: string;
}

type Reason =
  | "LinkerdCNIRedirectFailed"
  | "LinkerdCNIConfigInvalid"
  | "LinkerdCNIApiUnreachable"
  | "LinkerdCNIRedirectMended"
  | "LinkerdCNIRedirectNotMended";

type Content = Pick<PodEvent, "type" | "reason" | "note">;

/** Errors with a more specific reason than a failed redirect. */
const REASONS: Readonly<Record<number, Reason>> = {
  [ErrorCode.config]: "LinkerdCNIConfigInvalid",
  [ErrorCode.tryAgainLater]: "LinkerdCNIApiUnreachable",
  [ErrorCode.rulesDiffer]: "LinkerdCNIRedirectNotMended",
};

type Entry = Readonly<Record<string, unknown>>;

/** The NRI plugin logs pods that it refused to start, and running pods that it repaired or left unchanged. */
function contentOf({ code, decision, error }: Entry): Content | undefined {
  if (typeof code === "number")
    return { type: "Warning", reason: REASONS[code] ?? "LinkerdCNIRedirectFailed", note: String(error) };
  if (decision !== "redirect") return undefined;
  const note = "The pod ran without its redirect. The rules were set in place; no restart is needed";
  return { type: "Normal", reason: "LinkerdCNIRedirectMended", note };
}

/** The time of an entry, in milliseconds since 1970. */
const timeOf = ({ time }: Entry): number => (typeof time === "string" ? Date.parse(time) : Number.NaN);

/** The Event for an action of the NRI plugin on a pod. The kubelet publishes what a CNI call answered. */
export function eventOf(entry: Entry): PodEvent | undefined {
  const { pod, verb } = entry;
  if (verb !== NRI_VERB || typeof pod !== "string") return undefined;
  const [namespace = "", name = ""] = pod.split("/");
  const found = contentOf(entry);
  if (found === undefined || name === "") return undefined;
  return { namespace, name, ...found, suffix: `nri-${timeOf(entry).toString(16)}` };
}

interface PodEventsDeps {
  readonly connect: () => Transport;
  /** This installer and its node. */
  readonly instance: string;
  readonly log: Log;
  readonly clock: Pick<Clock, "now" | "date" | "random">;
}

/** The runtime retries a pod every few seconds: the same Event is not repeated for this long, nor kept longer. */
const SAID_MS = 10 * 60_000;
const MOST_WAITING = 100;
const MOST_AT_ONCE = 10;
const DEADLINE_MS = 3_000;
/** Without an answer, or with one that may be another later. */
const FAILED: BackoffPolicy = { firstMs: 5_000, longestMs: 60_000 };

/** Publishes Events about pods, each once in ten minutes, and few at a time. */
export class PodEvents {
  private readonly waiting = new Map<string, { readonly event: PodEvent; readonly at: number }>();
  private readonly said = new Map<string, number>();
  private readonly client: KubernetesClient;
  private readonly recorder: EventRecorder;
  private readonly failed: Backoff;
  private retryAt = 0;
  private busy = false;

  constructor(private readonly deps: PodEventsDeps) {
    this.client = new KubernetesClient((call) => deps.connect()(call), { deadlineMs: DEADLINE_MS });
    const reporter = { controller: CNI_NAME, instance: deps.instance };
    this.recorder = new EventRecorder(reporter, { client: this.client, clock: deps.clock });
    this.failed = new Backoff(FAILED, deps.clock.random);
  }

  /**
   * Reads what the NRI plugin logged shortly before this installer began to follow the log, since both start at the
   * same time. The API server knows which Events were already published.
   */
  takeEarlier(entries: readonly Entry[]): void {
    const since = this.deps.clock.date().getTime() - SAID_MS;
    for (const entry of entries) if (timeOf(entry) >= since) this.take(entry);
  }

  /** Queues the Event of a line of the log of calls. */
  take(entry: Entry): void {
    const event = eventOf(entry);
    if (event === undefined || this.waiting.size >= MOST_WAITING) return;
    const key = `${event.namespace}/${event.name} ${event.reason}`;
    if (!this.said.has(key) && !this.waiting.has(key)) this.waiting.set(key, { event, at: this.deps.clock.now() });
  }

  /** Publishes some of the queued Events; called every few seconds. */
  async publish(): Promise<void> {
    const { now } = this.deps.clock;
    this.forget();
    if (this.busy || this.waiting.size === 0 || now() < this.retryAt) return;
    this.busy = true;
    try {
      await this.publishSome();
      this.failed.reset();
    } catch (error) {
      this.retryAt = now() + this.failed.next();
      this.deps.log.debug(`Events wait: ${reasonOf(error)}`);
    } finally {
      this.busy = false;
    }
  }

  private forget(): void {
    const isOld = (at: number) => this.deps.clock.now() - at >= SAID_MS;
    for (const [key, at] of this.said) if (isOld(at)) this.said.delete(key);
    for (const [key, { event, at }] of this.waiting) {
      if (!isOld(at)) continue;
      this.waiting.delete(key);
      this.deps.log.warn(`Event ${key} could not be published: ${event.note}`);
    }
  }

  /** @throws the last error if nothing was published */
  private async publishSome(): Promise<void> {
    // The API server may refuse the Events of one namespace, for example by a rate limit or a webhook.
    const failing = new Set<string>();
    let [tried, failure]: [number, unknown] = [0, undefined];
    for (const [key, entry] of [...this.waiting]) {
      const { event } = entry;
      if (failing.has(event.namespace)) continue;
      if (tried === MOST_AT_ONCE) break;
      tried += 1;
      try {
        await this.publishOne(event);
        this.said.set(key, this.deps.clock.now());
        this.waiting.delete(key);
      } catch (error) {
        failure = error;
        failing.add(event.namespace);
        // Others are tried first.
        this.waiting.delete(key);
        this.waiting.set(key, entry);
      }
    }
    if (tried > 0 && tried === failing.size) throw failure;
  }

  /** Logs a refusal and does not retry it; throws if a later try may succeed, and the Event stays queued. */
  private async publishOne({ namespace, name, type, reason, note, suffix }: PodEvent): Promise<void> {
    const uid = await this.uidOf(namespace, name);
    if (uid === undefined) return;
    try {
      const regarding = { apiVersion: "v1", kind: "Pod", namespace, name, uid };
      await this.recorder.record(regarding, { type, reason, action: "Redirecting", note }, suffix);
    } catch (error) {
      if (!(error instanceof ApiError) || isTemporary(error.status)) throw error;
      this.deps.log.warn(`Event ${reason} on pod ${namespace}/${name} was refused: ${error.status}`);
    }
  }

  /** Undefined if the pod does not exist or may not be read. */
  private async uidOf(namespace: string, name: string): Promise<string | undefined> {
    try {
      return (await this.client.get(resources.pods, { namespace, name })).metadata?.uid;
    } catch (error) {
      if (!(error instanceof ApiError) || isTemporary(error.status)) throw error;
      return undefined;
    }
  }
}
