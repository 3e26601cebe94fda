import { flag } from "../helm";
import { group } from "../value-groups";
import { textMap } from "../value-types";

const podMonitor = group({
  enabled: flag().default(false).meta({
    description: "Create a PodMonitor (Prometheus Operator) for the metrics of the installer and the repair controller",
  }),
  labels: textMap()
    .default({})
    .meta({
      description: "Labels of the PodMonitor, by which Prometheus selects it",
      examples: [{ release: "prometheus" }],
    }),
});

/** The values about what Prometheus and Grafana are given. */
export const monitoring = { podMonitor };
