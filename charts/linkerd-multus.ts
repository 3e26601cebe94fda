import { type App, Chart } from "cdk8s";
import { LinkerdMultus, LinkerdMultusNamespace, multusValues } from "../constructs";
import { NAME as CNI_NAME } from "../constructs/linkerd-cni";
import { DEFINITION_VERSION, NAME } from "../constructs/multus/names";
import { NAMESPACE_LABELS } from "../constructs/namespace";
import { chartReference } from "../constructs/version";
import { chartFiles, HelmChart, writeManifests } from "../helm/index";
import { chartMetadata, concernsMultus } from "./metadata";
import { makeNamespace } from "./namespace";

const introduction = `
For clusters whose networks [Multus](https://github.com/k8snetworkplumbingwg/multus-cni) attaches: an operator that
gives namespaces the NetworkAttachmentDefinition of the [Linkerd](https://linkerd.io) CNI plugin, and a webhook that attaches their meshed pods to it. It reads the plugin's configuration from the chart \`linkerd2-cni\`, which is installed
first.

\`\`\`sh
${makeNamespace(CNI_NAME, NAMESPACE_LABELS)}
helm install linkerd-cni -n linkerd-cni --set chained=false ${chartReference("linkerd2-cni")}
helm install linkerd-multus -n linkerd-multus --create-namespace ${chartReference("linkerd-multus")}
kubectl annotate namespace shop linkerd.io/multus=enabled linkerd.io/inject=enabled
\`\`\`

With \`chained=false\` Multus alone calls the plugin, and the nodes' CNI configuration stays as it is.

By default the operator makes and renews the webhook's certificate itself; neither the chart nor what it renders holds
one. With \`webhook.certificates: cert-manager\` it is cert-manager's.
`;

const notes = `Multus attaches meshed pods to the Linkerd CNI plugin once the operator runs:

  kubectl -n {{ .Release.Namespace }} rollout status deployment/${NAME}

Mesh a namespace:

  kubectl annotate namespace NAME linkerd.io/multus=enabled linkerd.io/inject=enabled
{{- if not (.Capabilities.APIVersions.Has "${DEFINITION_VERSION}") }}

WARNING: this cluster has no NetworkAttachmentDefinitions (k8s.cni.cncf.io/v1): install Multus first.
{{- end }}
`;

/** The Helm chart linkerd-multus: its files, by path. */
export function linkerdMultus(app: App): ReadonlyMap<string, string> {
  const chart = new HelmChart(app, NAME);
  new LinkerdMultus(chart, "multus");
  return chartFiles({
    chart,
    values: multusValues,
    introduction,
    notes,
    metadata: chartMetadata({
      name: NAME,
      description: "Attaches meshed pods to the Linkerd CNI plugin in clusters with Multus",
      keywords: ["linkerd", "cni", "multus", "service-mesh"],
      concerns: concernsMultus,
      manual: "multus.md",
    }),
  });
}

/** The manifests that the chart renders by default, and its namespace. */
export function linkerdMultusChart(app: App): Chart {
  const chart = new Chart(app, NAME);
  new LinkerdMultusNamespace(chart, "namespace");
  new LinkerdMultus(chart, "multus");
  return chart;
}

/** The same, as text. */
export const linkerdMultusManifests = (app: App): string => writeManifests(linkerdMultusChart(app).toJson());
