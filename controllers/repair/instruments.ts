import { Counter, Histogram, Registry } from "prom-client";
import { gauges } from "../gauge";

/** The prefix and the first eight names are those of linkerd's own repair controller. */
const PREFIX = "linkerd_cni_repair_controller_";
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Values that are read when the metrics are. */
export interface Readings {
  readonly broken: () => number;
  readonly notRedirected: () => number;
  readonly breakersOpen: () => number;
  readonly installerReady: () => boolean;
}

export type Instruments = ReturnType<typeof createInstruments>;

/** What the repair controller counts and measures. */
export function createInstruments() {
  const registry = new Registry();
  const registers = [registry];
  const counter = (name: string, help: string) => new Counter({ name: `${PREFIX}${name}`, help, registers });
  const seconds = (name: string, help: string) =>
    new Histogram({ name: `${PREFIX}${name}`, help, registers, buckets: SECONDS });
  const gauge = gauges(registry, PREFIX);
  return {
    registry,
    queueOverflow: counter("queue_overflow_total", "Pods that were not looked at, because there are too many."),
    deleted: counter("pods_deleted_total", "Pods that were deleted."),
    deleteSeconds: seconds("pods_delete_latency_seconds", "Time that deleting a pod took."),
    deleteErrors: counter("pods_delete_errors_total", "Deletions that were refused or got no answer."),
    deleteTimeouts: counter("pods_delete_timeout_total", "Deletions that got no answer in time."),
    publishSeconds: seconds("events_publish_latency_seconds", "Time that publishing an Event took."),
    publishErrors: counter("events_publish_errors_total", "Events that were refused or got no answer."),
    publishTimeouts: counter("events_publish_timeouts_total", "Events that got no answer in time."),
    breakerOpened: counter("breaker_opened_total", "Times that an owner was left alone, as its pods came back broken."),
    watchErrors: counter("watch_errors_total", "Connections for watching pods that ended in an error."),
    /** Registers what is read from elsewhere. */
    read(readings: Readings): void {
      gauge("pods_broken", "Pods that wait for being deleted.", readings.broken);
      gauge("pods_not_redirected", "Pods that run without redirect and without a validator.", readings.notRedirected);
      gauge("breakers_open", "Owners that are left alone at present.", readings.breakersOpen);
      gauge("installer_ready", "Whether the node's installer was ready when last asked.", () =>
        readings.installerReady() ? 1 : 0,
      );
    },
  };
}
