import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { gauges } from "../gauge";

const PREFIX = "linkerd_multus_";
const SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5];

export type Instruments = ReturnType<typeof createInstruments>;

/** What the operator counts and measures; the webhook and the certificates add theirs to the registry. */
export function createInstruments() {
  const registry = new Registry();
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[] = []) =>
    new Counter<L>({ name: `${PREFIX}${name}`, help, registers, labelNames });
  return {
    registry,
    applies: counter("applies_total", "Definitions that were created or changed."),
    deletes: counter("deletes_total", "Definitions that were deleted."),
    contests: counter("contests_total", "Times that putting a definition right was put off, as others undo it."),
    errors: counter("errors_total", "Writes that were refused or got no answer.", ["operation"]),
    watchErrors: counter("watch_errors_total", "Connections for watching that ended in an error.", ["resource"]),
    reconcileSeconds: new Histogram({
      name: `${PREFIX}reconcile_seconds`,
      help: "Time that putting a namespace right took, without waiting for its turn.",
      registers,
      buckets: SECONDS,
    }),
    /** Registers values by state that are read when the metrics are. */
    states: (name: string, help: string, read: () => Readonly<Record<string, number>>) =>
      new Gauge({
        name: `${PREFIX}${name}`,
        help,
        registers,
        labelNames: ["state"],
        collect() {
          for (const [state, count] of Object.entries(read())) this.set({ state }, count);
        },
      }),
    /** Registers a value that is read when the metrics are. */
    gauge: gauges(registry, PREFIX),
  };
}
