import { type App, Chart } from "cdk8s";
import { CNI_NAME, MULTUS_NAME, NetworkDefinition } from "../cni/contract";
import { LinkerdMultus, LinkerdMultusNamespace, multusValues } from "../constructs";
import { NAMESPACE_LABELS } from "../constructs/namespace";
import { chartReference } from "../constructs/version";
import { chartFiles, HelmChart, writeManifests } from "../helm/index";
import { chartMetadata, concernsMultus, docs } from "./metadata";
import { makeNamespace } from "./namespace";

const introduction = `
Attaches meshed pods to the [Linkerd](https://linkerd.io) CNI plugin in clusters whose networks
[Multus](https://github.com/k8snetworkplumbingwg/multus-cni) attaches: an operator gives namespaces the plugin's
NetworkAttachmentDefinition, and a webhook adds it to their meshed pods. If your Multus has an auxiliary chain
(Multus 4.2.2, OpenShift 4.22), you do not need this chart: [Multus](${docs("multus.md")}).

## Install

\`\`\`sh
${makeNamespace(CNI_NAME, NAMESPACE_LABELS)}
helm install linkerd-cni -n linkerd-cni --set chained=false ${chartReference("linkerd2-cni")}
helm install linkerd-multus -n linkerd-multus --create-namespace ${chartReference("linkerd-multus")}
kubectl annotate namespace shop linkerd.io/multus=enabled linkerd.io/inject=enabled
\`\`\`

Install Multus first. With \`chained=false\` Multus alone calls the plugin, and the nodes' CNI configuration stays as it
is. The operator reads the plugin's configuration from the chart \`linkerd2-cni\`, and creates and renews the webhook's
certificate; with \`webhook.certificates: cert-manager\`, cert-manager does.

## Upgrade

\`\`\`sh
helm upgrade linkerd-multus -n linkerd-multus --reset-then-reuse-values ${chartReference("linkerd-multus")}
\`\`\`

## Uninstall

\`\`\`sh
helm uninstall linkerd-multus -n linkerd-multus
kubectl delete net-attach-def --all-namespaces -l app.kubernetes.io/managed-by=linkerd-multus
\`\`\`

Uninstall it before \`linkerd2-cni\`. The second command removes the definitions, without which pods that name them do
not start.

## Compatibility

Kubernetes 1.25 or later; tested with Multus 4.2.2.
`;

const notes = `Multus attaches meshed pods to the Linkerd CNI plugin once the operator runs:

  kubectl -n {{ .Release.Namespace }} rollout status deployment/${MULTUS_NAME}

Mesh a namespace:

  kubectl annotate namespace NAME linkerd.io/multus=enabled linkerd.io/inject=enabled
{{- if not (.Capabilities.APIVersions.Has "${NetworkDefinition.apiVersion}") }}

WARNING: this cluster has no NetworkAttachmentDefinitions (k8s.cni.cncf.io/v1): install Multus first.
{{- end }}
`;

/** The Helm chart linkerd-multus: its files, by path. */
export function linkerdMultus(app: App): ReadonlyMap<string, string> {
  const chart = new HelmChart(app, MULTUS_NAME);
  new LinkerdMultus(chart, "multus");
  return chartFiles({
    chart,
    values: multusValues,
    introduction,
    notes,
    metadata: chartMetadata({
      name: MULTUS_NAME,
      description: "Attaches meshed pods to the Linkerd CNI plugin in clusters with Multus",
      keywords: ["linkerd", "cni", "multus", "service-mesh"],
      concerns: concernsMultus,
      manual: "multus.md",
    }),
  });
}

/** The manifests that the chart renders by default, and its namespace. */
export function linkerdMultusChart(app: App): Chart {
  const chart = new Chart(app, MULTUS_NAME);
  new LinkerdMultusNamespace(chart, "namespace");
  new LinkerdMultus(chart, "multus");
  return chart;
}

/** The same, as text. */
export const linkerdMultusManifests = (app: App): string => writeManifests(linkerdMultusChart(app).toJson());
