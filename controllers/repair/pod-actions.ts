import { reasonOf } from "../../cni/errors";
import type { KubernetesClient } from "../../kubernetes/client";
import { isConflict, isNotFound, isTooManyRequests } from "../../kubernetes/errors";
import type { EventRecorder, EventSpec } from "../../kubernetes/events";
import { resources } from "../../kubernetes/resources";
import { ApiTimeout } from "../../kubernetes/transport";
import type { Clock } from "../../process/clock";
import type { Log } from "../../process/log";
import type { Metrics } from "./metrics";
import type { TrackedPod } from "./pod-store";

/**
 * The result of a deletion: `gone` means that the pod no longer exists, `held` that its budgets do not allow an
 * eviction now.
 */
export type DeleteOutcome = "deleted" | "gone" | "held" | "failed";

interface PodActionsDeps {
  readonly client: KubernetesClient;
  readonly recorder: EventRecorder;
  readonly clock: Pick<Clock, "now">;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** Requests to the API server about one pod. Failures are counted and logged, not thrown. */
export class PodActions {
  constructor(private readonly deps: PodActionsDeps) {}

  /** Deletes a broken pod, or evicts it if it serves. The UID protects a new pod with the same name. */
  async delete(pod: TrackedPod): Promise<DeleteOutcome> {
    const { clock, metrics } = this.deps;
    const start = clock.now();
    const evicts = pod.diagnosis !== "failed";
    try {
      await (evicts ? this.evict(pod) : this.remove(pod));
    } catch (error) {
      // 409: the name belongs to another pod.
      if (isNotFound(error) || isConflict(error)) return "gone";
      return evicts && isTooManyRequests(error) ? this.held(pod, error) : this.failed(pod, error);
    }
    metrics.deleted.inc();
    metrics.deleteSeconds.observe((clock.now() - start) / 1000);
    return "deleted";
  }

  /** Publishes an Event about a pod. */
  async publish(pod: TrackedPod, spec: EventSpec): Promise<void> {
    const { clock, log, metrics, recorder } = this.deps;
    const { namespace, name, uid, controller } = pod;
    const related = controller && {
      related: {
        apiVersion: controller.apiVersion,
        kind: controller.kind,
        namespace,
        name: controller.name,
        uid: controller.uid,
      },
    };
    const start = clock.now();
    try {
      await recorder.record({ apiVersion: "v1", kind: "Pod", namespace, name, uid }, { ...spec, ...related });
      metrics.publishSeconds.observe((clock.now() - start) / 1000);
    } catch (error) {
      (error instanceof ApiTimeout ? metrics.publishTimeouts : metrics.publishErrors).inc();
      log.warn(`Event ${spec.reason} on pod ${namespace}/${name} could not be published: ${reasonOf(error)}`);
    }
  }

  /** Without a grace period, since nothing in the pod works. */
  private remove({ namespace, name, uid }: TrackedPod): Promise<void> {
    return this.deps.client.delete(
      resources.pods,
      { namespace, name },
      { preconditions: { uid }, gracePeriodSeconds: 0 },
    );
  }

  /** With the pod's grace period, and as its PodDisruptionBudgets allow. */
  private async evict({ namespace, name, uid }: TrackedPod): Promise<void> {
    await this.deps.client.createSubresource(resources.pods, { namespace, name }, "eviction", {
      apiVersion: "policy/v1",
      kind: "Eviction",
      metadata: { namespace, name },
      deleteOptions: { preconditions: { uid } },
    });
  }

  private held({ namespace, name, attempts }: TrackedPod, error: unknown): DeleteOutcome {
    this.deps.log[attempts === 0 ? "info" : "debug"](
      `pod ${namespace}/${name} may not be evicted now: ${reasonOf(error)}`,
    );
    return "held";
  }

  private failed({ namespace, name }: TrackedPod, error: unknown): DeleteOutcome {
    const { log, metrics } = this.deps;
    (error instanceof ApiTimeout ? metrics.deleteTimeouts : metrics.deleteErrors).inc();
    log.warn(`pod ${namespace}/${name} could not be deleted: ${reasonOf(error)}`);
    return "failed";
  }
}
