import { z } from "zod";
import { flag, integer } from "../../helm/loose-types";
import { group } from "../value-groups";
import { labels, word } from "../value-types";
import { repository } from "../version";

export const runbookUrl = () =>
  z
    .string()
    .regex(/^https?:\/\/[!-~]*[!-.0-~]$/, "is not an http or https URL without a slash at its end")
    .default(`${repository}/blob/main/docs/runbooks`)
    .meta({ description: "URL of the runbooks; an alert links to its page below, NAME.md" });

/** Labels by which Prometheus selects an object of the Prometheus Operator. */
export const prometheusLabels = (kind: "PodMonitor" | "PrometheusRule") =>
  labels()
    .default({})
    .meta({
      description: `Labels of the ${kind}, by which Prometheus selects it`,
      examples: [{ release: "prometheus" }],
    });

const podMonitor = group("PodMonitor of the Prometheus Operator", {
  enabled: flag()
    .default(false)
    .meta({
      description:
        "Create a PodMonitor (Prometheus Operator) for the metrics of the installer and the repair controller, and one for " +
        "the NRI plugin's",
    }),
  labels: prometheusLabels("PodMonitor"),
});

const prometheusRule = group("PrometheusRule of the Prometheus Operator", {
  enabled: flag()
    .default(false)
    .meta({
      description:
        "Create a PrometheusRule (Prometheus Operator) with alerts about the plugin, the repair controller and " +
        "the NRI plugin",
    }),
  labels: prometheusLabels("PrometheusRule"),
  runbookUrl: runbookUrl(),
  notReadyMinutes: integer(1, 1440).default(5).meta({
    description:
      "How long a node may be not ready, or its installer may not answer Prometheus, without causing an alert",
  }),
  contests: integer(1, 1000).default(3).meta({
    description: "How often another writer must undo the chain in 15 minutes to cause an alert",
  }),
  addErrors: integer(1, 1_000_000).default(5).meta({
    description: "How many ADD calls of a node must fail in 15 minutes to cause an alert",
  }),
  addMilliseconds: integer(1, 5000).default(1000).meta({
    description: "How long the slowest hundredth of a node's ADD calls (p99) may take without causing an alert",
  }),
});

const grafanaDashboard = group("Dashboard for Grafana", {
  enabled: flag().default(false).meta({
    description: "Create a ConfigMap with a dashboard, as Grafana's sidecar reads it",
  }),
  labels: labels()
    .default({})
    .meta({
      description: 'Labels of the ConfigMap, besides grafana_dashboard: "1", by which the sidecar finds it',
      examples: [{ grafana_dashboard: "mesh" }],
    }),
  folder: word()
    .min(1)
    .default("Linkerd")
    .meta({ description: "Folder of the dashboard in Grafana (annotation grafana_folder)" }),
});

/** The values of the objects for Prometheus and Grafana. */
export const monitoring = { podMonitor, prometheusRule, grafanaDashboard };
