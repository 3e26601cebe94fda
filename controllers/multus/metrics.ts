import { Registry } from "../../process/metrics";

const SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5];

export type Metrics = ReturnType<typeof createMetrics>;

/** Metrics of the operator; the webhook and the certificates register their own. */
export function createMetrics() {
  const registry = new Registry("linkerd_multus_");
  return {
    registry,
    applies: registry.counter({ name: "applies_total", help: "Definitions that were created or changed." }),
    deletes: registry.counter({ name: "deletes_total", help: "Definitions that were deleted." }),
    conflicts: registry.counter({
      name: "contests_total",
      help: "Corrections of a definition that were delayed because another client undoes them.",
    }),
    errors: registry.counter({
      name: "errors_total",
      help: "Writes that were refused or got no answer.",
      labels: ["operation"],
    }),
    watchErrors: registry.counter({
      name: "watch_errors_total",
      help: "Connections for watching that ended in an error.",
      labels: ["resource"],
    }),
    reconcileSeconds: registry.histogram(
      { name: "reconcile_seconds", help: "Time to reconcile a namespace, without the wait for its turn." },
      SECONDS,
    ),
  };
}
