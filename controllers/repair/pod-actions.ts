import { reasonOf } from "../../cni/errors";
import type { KubernetesClient } from "../../kubernetes/client";
import { isConflict, isNotFound } from "../../kubernetes/errors";
import type { EventRecorder, EventSpec } from "../../kubernetes/events";
import { resources } from "../../kubernetes/resources";
import { ApiTimeout } from "../../kubernetes/transport";
import type { Clock } from "../../process/clock";
import type { Log } from "../../process/log";
import type { Metrics } from "./metrics";
import type { TrackedPod } from "./pod-store";

/** The result of a deletion: `gone` means that the pod no longer exists. */
export type DeleteOutcome = "deleted" | "gone" | "failed";

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

  /**
   * Deletes a broken pod, without a grace period, since nothing in it works. The UID protects a new pod with the same
   * name.
   */
  async delete({ namespace, name, uid }: TrackedPod): Promise<DeleteOutcome> {
    const { client, clock, log, metrics } = this.deps;
    const start = clock.now();
    try {
      const options = { preconditions: { uid }, gracePeriodSeconds: 0 };
      await client.delete(resources.pods, { namespace, name }, options);
    } catch (error) {
      // 409: the name belongs to another pod.
      if (isNotFound(error) || isConflict(error)) return "gone";
      (error instanceof ApiTimeout ? metrics.deleteTimeouts : metrics.deleteErrors).inc();
      log.warn(`pod ${namespace}/${name} could not be deleted: ${reasonOf(error)}`);
      return "failed";
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
}
