import { reasonOf } from "../../cni/errors";
import { backoffMs } from "../../kubernetes/backoff";
import type { EventSpec } from "../../kubernetes/events";
import { RateLimiter } from "../../kubernetes/rate-limiter";
import { WorkQueue } from "../../kubernetes/work-queue";
import type { Clock } from "../../process/clock";
import type { Log } from "../../process/log";
import { deletedUnconfigured, endedUnconfigured, leftUnconfigured, notRedirected, suspended } from "./events";
import type { Metrics } from "./metrics";
import { OWNER_BACKOFF, OwnerBackoff, type Permission } from "./owner-backoff";
import type { PodActions } from "./pod-actions";
import { NRI_WAIT_MS, PodStore, type TrackedPod } from "./pod-store";
import type { Settings } from "./settings";

interface RepairControllerDeps {
  readonly settings: Pick<Settings, "rate" | "deleteUnowned" | "waitForNri">;
  readonly actions: Pick<PodActions, "delete" | "publish">;
  /** Whether the node's installer is ready, so that new pods get the plugin. */
  readonly installerReady: () => Promise<boolean>;
  /** Why new pods might get no proxy; undefined if they get one. */
  readonly injectorProblem: () => Promise<string | undefined>;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** Milliseconds between questions whether pods may be deleted. */
const ASK_MS = 2_000;
const RETRY = { firstMs: 2_000, longestMs: 60_000 };

type Suspension = Extract<Permission, { kind: "suspend" }>;
type Action = Permission | { readonly kind: "none" };

const describe = ({ namespace, name }: TrackedPod) => `pod ${namespace}/${name}`;

/** A condition of deletions: asked about every {@link ASK_MS} at most, and logged when its answer changes. */
class Condition {
  /** Why it does not hold. */
  problem: string | undefined;
  private askedAt = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly ask: () => Promise<string | undefined>,
    private readonly consequence: string,
    private readonly deps: Pick<RepairControllerDeps, "clock" | "log">,
  ) {}

  async holds(): Promise<boolean> {
    const { clock, log } = this.deps;
    if (clock.now() - this.askedAt >= ASK_MS) {
      const problem = await this.ask();
      if (problem !== undefined && problem !== this.problem) log.warn(`${problem}: ${this.consequence}`);
      if (problem === undefined && this.problem !== undefined) log.info(`no longer true: ${this.problem}`);
      this.problem = problem;
      this.askedAt = clock.now();
    }
    return this.problem === undefined;
  }
}

/** Deletes the broken pods of one node, so that their controllers replace them. */
export class RepairController {
  readonly pods: PodStore;
  private readonly backoff = new OwnerBackoff(OWNER_BACKOFF);
  private readonly limiter: RateLimiter;
  private readonly queue: WorkQueue;
  private readonly installer: Condition;
  private readonly injector: Condition;

  constructor(private readonly deps: RepairControllerDeps) {
    const { clock, log, metrics, settings, signal } = deps;
    this.pods = new PodStore({
      now: () => clock.now(),
      changed: (uid) => this.changed(uid),
      ended: (pod) => this.leave(pod, endedUnconfigured(pod.controller)),
      overflow: () => metrics.queueOverflow.inc(),
    });
    this.limiter = new RateLimiter(settings.rate, clock);
    const askInstaller = async () => ((await deps.installerReady()) ? undefined : "the node's installer is not ready");
    this.installer = new Condition(askInstaller, "no pod is deleted", deps);
    this.injector = new Condition(deps.injectorProblem, "only pods of the control plane are deleted", deps);
    const failed = (uid: string, error: unknown) => log.error(`pod with UID ${uid}: ${reasonOf(error)}`);
    this.queue = new WorkQueue((uid) => this.reconcile(uid), { clock, signal, failed });
    metrics.read({
      broken: () => this.pods.count((pod) => this.isBroken(pod) || this.isLeft(pod)),
      notRedirected: () => this.pods.count(({ redirect }) => redirect === "absent"),
      suspendedOwners: () => this.backoff.suspended(clock.now()),
      installerReady: () => this.installer.problem === undefined,
    });
  }

  /** Runs until the signal is given. */
  run(): Promise<void> {
    return this.queue.run();
  }

  /** Reports that an audit found connections to a pod not redirected. */
  notRedirected(pod: TrackedPod): Promise<void> {
    return this.deps.actions.publish(pod, notRedirected);
  }

  private changed(uid: string): void {
    const pod = this.pods.get(uid);
    if (pod === undefined) return;
    if (this.isBroken(pod)) this.queue.add(uid, { urgent: pod.isControlPlane });
    else if (this.isLeft(pod)) this.leave(pod, leftUnconfigured);
    if (pod.diagnosis === "passed" && this.backoff.recordSuccess(pod.owner, pod.firstSeen)) this.release(pod.owner);
  }

  /** Reconciles the broken pods of an owner, which may have waited for the end of its suspension. */
  private release(owner: string): void {
    for (const pod of this.pods.values()) if (pod.owner === owner && this.isBroken(pod)) this.queue.add(pod.uid);
  }

  /** Whether a pod is broken and must be deleted. */
  private isBroken(pod: TrackedPod): boolean {
    return this.hasFailed(pod) && (pod.isReplaced || this.deps.settings.deleteUnowned);
  }

  /** Whether a pod is broken and stays, because nothing would replace it. */
  private isLeft(pod: TrackedPod): boolean {
    return this.hasFailed(pod) && !pod.isReplaced && !this.deps.settings.deleteUnowned;
  }

  private hasFailed(pod: TrackedPod): boolean {
    return !pod.deleted && pod.diagnosis === "failed" && !this.waitsForNri(pod);
  }

  /** Reports once why a broken pod is not deleted. */
  private leave(pod: TrackedPod, spec: EventSpec): void {
    if (pod.reported) return;
    pod.reported = true;
    const { actions, log, metrics } = this.deps;
    metrics.left.inc();
    log.warn(`left ${describe(pod)} as it is (${spec.reason}): ${spec.note}`);
    // The callee counts and logs a failure.
    void actions.publish(pod, spec);
  }

  /**
   * Whether the NRI plugin may still set a pod's redirect. It does so as soon as it runs; the next run of the
   * validator, which the kubelet starts within five minutes, confirms it. If no run follows, do not wait for NRI.
   */
  private waitsForNri({ failures }: TrackedPod): boolean {
    if (!this.deps.settings.waitForNri || failures === undefined) return false;
    return failures.lastSeen - failures.firstSeen < NRI_WAIT_MS;
  }

  /** Reconciles a pod. @returns milliseconds until the next reconciliation; undefined: not before the pod changes */
  private async reconcile(uid: string): Promise<number | undefined> {
    const first = this.actionFor(uid);
    if (first.kind === "none") return undefined;
    if (first.kind === "wait") return first.ms;

    await this.waitForLimiter();
    if (this.deps.signal.aborted) return undefined;
    if (!(await this.installer.holds())) return ASK_MS;
    // The control plane's pods have their proxies from linkerd's chart, and among them is the injector.
    if (this.pods.get(uid)?.isControlPlane === false && !(await this.injector.holds())) return ASK_MS;

    // By now the pod may work or be deleted.
    const pod = this.pods.get(uid);
    const action = this.actionFor(uid);
    if (pod === undefined || action.kind === "none") return undefined;
    if (action.kind === "wait") return action.ms;
    return action.kind === "suspend" ? this.suspend(pod, action) : this.delete(pod);
  }

  private actionFor(uid: string): Action {
    const pod = this.pods.get(uid);
    if (pod === undefined || !this.isBroken(pod)) return { kind: "none" };
    const now = this.deps.clock.now();
    if (pod.retryAt > now) return { kind: "wait", ms: pod.retryAt - now };
    return this.backoff.ask(pod.owner, pod.firstSeen, now);
  }

  private async delete(pod: TrackedPod): Promise<number | undefined> {
    const { actions, clock, log } = this.deps;
    const start = clock.now();
    this.limiter.take();
    const outcome = await actions.delete(pod);
    // An unanswered deletion may have happened.
    if (outcome === "deleted" || outcome === "failed") this.backoff.recordDeletion(pod.owner, pod.firstSeen, start);
    if (outcome !== "deleted") {
      // A deleted pod stays in the store until the watch reports it: otherwise it would look like its own replacement.
      pod.attempts += 1;
      const pauseMs = backoffMs(RETRY, pod.attempts, clock.random());
      pod.retryAt = clock.now() + pauseMs;
      return pauseMs;
    }
    pod.deleted = true;
    log.info(`deleted ${describe(pod)} (${deletedUnconfigured.reason}): ${deletedUnconfigured.note}`);
    await actions.publish(pod, deletedUnconfigured);
    return undefined;
  }

  private async suspend(pod: TrackedPod, { rounds, ms }: Suspension): Promise<number> {
    const { actions, clock, log, metrics } = this.deps;
    const { controller, owner } = pod;
    const spec = suspended(controller ? `${controller.kind} ${controller.name}` : `Pod ${pod.name}`, rounds, ms);
    this.backoff.suspend(owner, clock.now());
    metrics.suspensions.inc();
    log.warn(`${describe(pod)} (${spec.reason}): ${spec.note}`);
    await actions.publish(pod, spec);
    return ms;
  }

  /** Waits until the rate allows one more deletion. The queue's only worker calls it, so nothing else takes it. */
  private async waitForLimiter(): Promise<void> {
    const { clock, signal } = this.deps;
    for (let ms = this.limiter.waitMs(); ms > 0 && !signal.aborted; ms = this.limiter.waitMs()) {
      await clock.sleep(ms, signal);
    }
  }
}
