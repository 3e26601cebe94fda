import { App } from "cdk8s";
import { k8s } from "cdk8s-plus-27";
import {
  chartFiles,
  concat,
  flag,
  HelmChart,
  HelmObject,
  integer,
  present,
  release,
  spread,
  valueRefs,
  when,
} from "linkerd-cni-cdk8s/helm";
import { z } from "zod";

/** The values of a chart of your own: types, defaults and what the documents say. */
const values = z.strictObject({
  replicas: integer(1, 100).default(2).meta({ description: "How many pods" }),
  image: z.string().default("ghcr.io/example/web:1").meta({ description: "Image of the pods" }),
  debug: flag().default(false).meta({ description: "Log more" }),
  labels: z.record(z.string(), z.string()).default({}).meta({ description: "Labels of the pods" }),
  nodeSelector: z.record(z.string(), z.string()).default({}).meta({ description: "Nodes to run on" }),
});

const { replicas, image, debug, labels, nodeSelector } = valueRefs(values);
const chart = new HelmChart(new App(), "web");
const selector = { app: "web" };

new HelmObject<k8s.KubeDeploymentProps>(chart, "deployment", k8s.KubeDeployment.GVK, {
  metadata: { name: concat(release.name, "-web"), namespace: release.namespace },
  spec: {
    replicas,
    selector: { matchLabels: selector },
    template: {
      metadata: { labels: { ...spread(labels), ...selector } },
      spec: {
        nodeSelector: present(nodeSelector),
        containers: [{ name: "web", image, env: [when(debug, { name: "LOG_LEVEL", value: "debug" })] }],
      },
    },
  },
});

const files = chartFiles({
  chart,
  values,
  introduction: "A chart made by cdk8s.",
  metadata: { name: "web", version: "1.0.0", appVersion: "1", description: "Example", kubeVersion: ">=1.25.0-0" },
});
process.stdout.write(JSON.stringify(Object.fromEntries(files)));
