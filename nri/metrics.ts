import { Registry } from "../process/metrics";
import type { Redirection } from "./redirector";

/** When a pod was checked. */
export type PodEvent = "run" | "create" | "synchronize";

const PREFIX = "linkerd_cni_nri_";
const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 2];

/** Values read at each scrape. */
interface Readings {
  readonly connected: () => boolean;
  readonly synchronized: () => boolean;
}

/** The metrics of the NRI plugin. */
export function createMetrics({ connected, synchronized }: Readings) {
  const registry = new Registry(PREFIX);
  const gauge = (name: string, help: string, read: () => boolean) =>
    registry.gauge({ name, help }, () => (read() ? 1 : 0));
  gauge("connected", "Whether the container runtime calls the plugin.", connected);
  gauge("synchronized", "Whether all pods that ran before were looked at.", synchronized);
  return {
    registry,
    pods: registry.counter<"event" | "outcome">({
      name: "pods_total",
      help: "Looks at pods.",
      labels: ["event", "outcome"],
    }),
    seconds: registry.histogram<"event">(
      { name: "call_duration_seconds", help: "Time that a pod took.", labels: ["event"] },
      SECONDS,
    ),
    mended: registry.counter({ name: "mended_pods_total", help: "Running pods that got missing rules." }),
    lookups: registry.counter({
      name: "lookups_total",
      help: "Objects of the API server that the installer looked up.",
    }),
    connections: registry.counter({ name: "connections_total", help: "Connections to the container runtime." }),
  };
}

/** The outcome of a pod with an error: a starting pod is refused, and the kubelet retries it. */
export type PodOutcome = Redirection["kind"] | "refused" | "failed";
