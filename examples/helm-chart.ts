import { App } from "cdk8s";
import { k8s } from "cdk8s-plus-27";
import {
  chartFiles,
  concat,
  HelmChart,
  HelmObject,
  present,
  release,
  spread,
  value,
  valueRefs,
  valuesOf,
  when,
} from "linkerd-cni-cdk8s/helm";

/** The values of a chart of your own: types, defaults and what the documents say. */
const values = valuesOf({
  replicas: value.integer({ description: "How many pods", default: 2, min: 1, max: 100 }),
  image: value.string({ description: "Image of the pods", default: "ghcr.io/example/web:1" }),
  debug: value.boolean({ description: "Log more", default: false }),
  labels: value.map({ description: "Labels of the pods", default: {} }),
  nodeSelector: value.map({ description: "Nodes to run on", default: {} }),
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
