import { type Counter, type Histogram, Registry } from "../../process/metrics";

/** The installer's metrics. */
export interface Instruments {
  readonly registry: Registry;
  /** A step that installed something for the first time. */
  readonly installs: Counter<"step">;
  readonly rechains: Counter<"file">;
  readonly contested: Counter<"file">;
  readonly failures: Counter;
  readonly pluginCalls: Counter<"verb" | "decision" | "code">;
  readonly pluginSeconds: Histogram<"verb">;
  readonly lookupSeconds: Histogram;
  readonly rulesSeconds: Histogram;
  readonly pluginRequests: Histogram<"verb">;
  readonly pluginLookups: Counter<"way">;
  /** Registers values that are read at each scrape. */
  read(readings: Readings): void;
}

/** Values read at each scrape. */
interface Readings {
  readonly chained: () => boolean;
  readonly ready: () => boolean;
  readonly reached: () => boolean;
}

/** Seconds. An ADD takes milliseconds; a look-up may take its deadline of 5 s. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];

export function createInstruments(): Instruments {
  const registry = new Registry("linkerd_cni_");
  const counter = <L extends string = never>(name: string, help: string, ...labels: readonly L[]) =>
    registry.counter({ name, help, labels });
  const histogram = <L extends string = never>(
    name: string,
    help: string,
    bounds: readonly number[],
    ...labels: readonly L[]
  ) => registry.histogram({ name, help, labels }, bounds);
  const gauge = (name: string, help: string, read: () => boolean) =>
    registry.gauge({ name, help }, () => (read() ? 1 : 0));
  return {
    registry,
    installs: counter("installs_total", "Steps that changed files of the node, by step.", "step"),
    rechains: counter("rechains_total", "Times that the stanza was put back into a configuration.", "file"),
    contested: counter("config_contested", "Times that another writer undid a repair within ten seconds.", "file"),
    failures: counter("failures_total", "Reconciliations of the node that ended in an error."),
    pluginCalls: counter("plugin_calls_total", "Calls of the plugin, from its log.", "verb", "decision", "code"),
    pluginSeconds: histogram("plugin_seconds", "Duration of a plugin call.", SECONDS, "verb"),
    lookupSeconds: histogram("plugin_lookup_seconds", "Time a plugin call took to look up its pod.", SECONDS),
    rulesSeconds: histogram("plugin_rules_seconds", "Time a plugin call took to set or check rules.", SECONDS),
    pluginRequests: histogram("plugin_api_requests", "API requests of a plugin call.", [0, 1, 2, 3], "verb"),
    pluginLookups: counter(
      "plugin_lookups_total",
      "Plugin calls that looked their pod up: answered by the installer, or decided by annotations without an answer.",
      "way",
    ),
    read: ({ chained, ready, reached }) => {
      gauge("chained", "Whether the active configuration ends in the stanza, or need not.", chained);
      gauge("ready", "Whether /ready is 200: pods are chained, and looked up.", ready);
      gauge("api_server_reachable", "Whether the node reaches the API server, as of the last check.", reached);
    },
  };
}
