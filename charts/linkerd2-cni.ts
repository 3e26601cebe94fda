import { type App, Chart } from "cdk8s";
import { LinkerdCni, LinkerdNamespace, values, version } from "../constructs";
import { chartFiles, HelmChart, writeManifests } from "../constructs/helm";

const introduction = `
The [Linkerd](https://linkerd.io) CNI plugin on every node, made by cdk8s from typed constructs: pods join the mesh
without the capability NET_ADMIN. Names, values and resources are those of linkerd's chart \`linkerd2-cni\`.

\`\`\`sh
helm install linkerd-cni -n linkerd-cni --create-namespace linkerd2-cni
linkerd install --linkerd-cni-enabled | kubectl apply -f -
\`\`\`

Where the cluster enforces Pod Security, label the namespace \`pod-security.kubernetes.io/enforce: privileged\`: the
pods mount directories of the node.
`;

const notes = `The CNI plugin is being installed on every node:

  kubectl -n {{ .Release.Namespace }} rollout status daemonset/linkerd-cni
  linkerd check --pre --linkerd-cni-enabled

Install Linkerd with \`linkerd install --linkerd-cni-enabled\`. Pods that are meshed already keep their own redirect
until they are replaced.
`;

/** The Helm chart linkerd2-cni: its files, by path. */
export function linkerd2Cni(app: App): ReadonlyMap<string, string> {
  const chart = new HelmChart(app, "linkerd2-cni");
  new LinkerdCni(chart, "cni");
  return chartFiles({
    chart,
    values,
    introduction,
    notes,
    metadata: {
      name: "linkerd2-cni",
      version,
      appVersion: version,
      description: "The Linkerd CNI plugin: pods join the mesh without NET_ADMIN",
      kubeVersion: ">=1.19.0-0",
      keywords: ["linkerd", "cni", "service-mesh"],
    },
  });
}

/** What the chart renders by default, with its namespace, for those who apply manifests. */
export function linkerdCniManifests(app: App): string {
  const chart = new Chart(app, "linkerd-cni");
  new LinkerdNamespace(chart, "namespace");
  new LinkerdCni(chart, "cni");
  return writeManifests(chart.toJson());
}
