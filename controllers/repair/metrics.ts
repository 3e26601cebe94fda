import { Registry } from "../../process/metrics";

/** This prefix and the first eight names equal those of linkerd's repair controller. */
const PREFIX = "linkerd_cni_repair_controller_";
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Values read at each scrape. */
interface Readings {
  readonly broken: () => number;
  readonly notRedirected: () => number;
  readonly suspendedOwners: () => number;
  readonly installerReady: () => boolean;
}

export type Metrics = ReturnType<typeof createMetrics>;

/** The metrics of the repair controller. */
export function createMetrics() {
  const registry = new Registry(PREFIX);
  const counter = (name: string, help: string) => registry.counter({ name, help });
  const seconds = (name: string, help: string) => registry.histogram({ name, help }, SECONDS);
  return {
    registry,
    queueOverflow: counter("queue_overflow_total", "Pods that were ignored because there are too many."),
    deleted: counter("pods_deleted_total", "Pods that were deleted."),
    deleteSeconds: seconds("pods_delete_latency_seconds", "Time that deleting a pod took."),
    deleteErrors: counter("pods_delete_errors_total", "Deletions that were refused or got no answer."),
    deleteTimeouts: counter("pods_delete_timeout_total", "Deletions that got no answer in time."),
    publishSeconds: seconds("events_publish_latency_seconds", "Time that publishing an Event took."),
    publishErrors: counter("events_publish_errors_total", "Events that were refused or got no answer."),
    publishTimeouts: counter("events_publish_timeouts_total", "Events that got no answer in time."),
    left: counter(
      "pods_left_total",
      "Broken pods that are not deleted, because they have ended or no controller replaces them.",
    ),
    suspensions: counter("suspensions_total", "Times an owner was suspended because its new pods were broken, too."),
    watchErrors: counter("watch_errors_total", "Connections for watching pods that ended in an error."),
    /** Registers values that other parts hold. */
    read(readings: Readings): void {
      const gauge = (name: string, help: string, read: () => number) => registry.gauge({ name, help }, read);
      gauge("pods_broken", "Pods that are broken and not deleted yet.", readings.broken);
      gauge("pods_not_redirected", "Pods that run without redirect and without a validator.", readings.notRedirected);
      gauge("suspended_owners", "Owners whose pods are not deleted at present.", readings.suspendedOwners);
      gauge("installer_ready", "Whether the node's installer was ready when last asked.", () =>
        readings.installerReady() ? 1 : 0,
      );
    },
  };
}
