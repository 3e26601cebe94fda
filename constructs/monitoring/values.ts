import { group, value } from "../../helm/index";
import { LABELS, WORD } from "../value-groups";
import { repository } from "../version";

/** Labels by which Prometheus selects an object of the Prometheus Operator. */
const prometheusLabels = (kind: "PodMonitor" | "PrometheusRule") =>
  value.map({
    ...LABELS,
    default: {},
    description: `Labels of the ${kind}, by which Prometheus selects it`,
    examples: [{ release: "prometheus" }],
  });

/** A duration as the Prometheus Operator reads it, or nothing. */
const duration = (description: string, example: string) =>
  value.string({
    pattern: /^(0|([0-9]+y)?([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?)$/,
    wrong: "is not a duration such as 30s or 1m30s",
    default: "",
    description,
    examples: [example],
  });

/** @param created what `enabled` creates */
export const podMonitorGroup = (created: string) =>
  group("PodMonitor of the Prometheus Operator", {
    enabled: value.boolean({ default: false, description: `Create ${created}` }),
    scrapeInterval: duration("How often Prometheus scrapes each pod; empty for Prometheus' own interval", "30s"),
    scrapeTimeout: duration(
      "When a scrape ends without an answer, at most the interval; empty for Prometheus' own timeout",
      "10s",
    ),
    labels: prometheusLabels("PodMonitor"),
  });

const podMonitor = podMonitorGroup(
  "a PodMonitor (Prometheus Operator) for the metrics of the installer and the repair controller, and one for the NRI " +
    "plugin's",
);

/** @param about what the alerts are about */
export const prometheusRuleGroup = (about: string) =>
  group("PrometheusRule of the Prometheus Operator", {
    enabled: value.boolean({
      default: false,
      description: `Create a PrometheusRule (Prometheus Operator) with alerts about ${about}`,
    }),
    labels: prometheusLabels("PrometheusRule"),
    runbookUrl: value.string({
      pattern: /^https?:\/\/[!-~]*[!-.0-~]$/,
      wrong: "is not an http or https URL without a slash at its end",
      default: `${repository}/blob/main/docs/runbooks`,
      description: "URL of the runbooks; an alert links to its page below, NAME.md",
    }),
  });

const thresholds = {
  notReadyMinutes: value.integer({
    min: 1,
    max: 1440,
    default: 5,
    description: "Alert when a node is not ready, or its installer does not answer Prometheus, for this many minutes",
  }),
  contests: value.integer({
    min: 1,
    max: 1000,
    default: 3,
    description: "Alert when another writer undoes the chain this many times in 15 minutes",
  }),
  addErrors: value.integer({
    min: 1,
    max: 1_000_000,
    default: 5,
    description: "Alert when this many ADD calls of a node fail in 15 minutes",
  }),
  addMilliseconds: value.integer({
    min: 1,
    max: 5000,
    default: 1000,
    description: "Alert when the p99 of a node's ADD calls exceeds this many milliseconds",
  }),
};

const about = "the plugin, the repair controller and the NRI plugin";
const prometheusRule = { ...prometheusRuleGroup(about), ...thresholds };

const grafanaDashboard = group("Dashboard for Grafana", {
  enabled: value.boolean({
    default: false,
    description: "Create a ConfigMap with a dashboard, as Grafana's sidecar reads it",
  }),
  labels: value.map({
    ...LABELS,
    default: {},
    description: 'Labels of the ConfigMap, besides grafana_dashboard: "1", by which the sidecar finds it',
    examples: [{ grafana_dashboard: "mesh" }],
  }),
  folder: value.string({
    ...WORD,
    notEmpty: true,
    default: "Linkerd",
    description: "Folder of the dashboard in Grafana (annotation grafana_folder)",
  }),
});

/** The values of the objects for Prometheus and Grafana. */
export const monitoring = { podMonitor, prometheusRule, grafanaDashboard };
