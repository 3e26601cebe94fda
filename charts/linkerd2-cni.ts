import { type App, Chart } from "cdk8s";
import { LinkerdCni, LinkerdNamespace, PLATFORM_NAMES, PLATFORMS, values } from "../constructs";
import { NAME } from "../constructs/linkerd-cni";
import { NAMESPACE_LABELS } from "../constructs/namespace";
import { FORMER_VALUES } from "../constructs/values";
import { chartReference } from "../constructs/version";
import { chartFiles, HelmChart, writeManifests } from "../helm/index";
import { chartMetadata, concernsMultus } from "./metadata";
import { labelNamespace, makeNamespace } from "./namespace";

/** The presets of the value `platform` as a table in Markdown. */
function platformsTable(): string {
  const rows = PLATFORM_NAMES.map((name) => {
    const platform = PLATFORMS[name];
    const parts = [
      platform.seLinuxOptions === undefined ? "" : `seLinuxOptions type ${platform.seLinuxOptions.type}`,
      platform.securityContextConstraint === undefined ? "" : `use of ${platform.securityContextConstraint}`,
    ];
    const cells = [platform.destCNINetDir, platform.destCNIBinDir].map((directory) => `\`${directory}\``);
    const others = parts.filter((part) => part !== "").join("; ");
    return `| ${name} | ${platform.title} | ${cells.join(" | ")} | ${others} | ${platform.note ?? ""} |`;
  });
  const head = "| Platform | | destCNINetDir | destCNIBinDir | Also | Note |\n|---|---|---|---|---|---|";
  return [head, ...rows].join("\n");
}

const introduction = `
The [Linkerd](https://linkerd.io) CNI plugin on every node, made by cdk8s from typed constructs: pods join the mesh
without the capability NET_ADMIN. Names, values and resources are those of linkerd's chart \`linkerd2-cni\`.

\`\`\`sh
${makeNamespace(NAME, NAMESPACE_LABELS)}
helm install linkerd-cni -n linkerd-cni ${chartReference("linkerd2-cni")}
linkerd install --crds --set installGatewayAPI=true | kubectl apply -f -
linkerd install --linkerd-cni-enabled | kubectl apply -f -
\`\`\`

The first label keeps Linkerd's webhooks away from the pods: the webhooks' own pods cannot start before them. The second label lets the pods mount directories of the node.

## Platforms

If you set \`platform\`, the chart uses these values as defaults:

${platformsTable()}
`;

const LACKS_LABEL = Object.entries(NAMESPACE_LABELS)
  .map(([name, value]) => `(ne (get $labels "${name}") "${value}")`)
  .join(" ");

const notes = `The CNI plugin is being installed on every node:

  kubectl -n {{ .Release.Namespace }} rollout status daemonset/linkerd-cni
  helm -n {{ .Release.Namespace }} test {{ .Release.Name }}
  linkerd check --pre --linkerd-cni-enabled
{{- $labels := lookup "v1" "Namespace" "" .Release.Namespace | dig "metadata" "labels" dict }}
{{- if or ${LACKS_LABEL} }}

Label its namespace, for Pod Security and so that Linkerd's webhooks do not delay the pods:

  ${labelNamespace("{{ .Release.Namespace }}", NAMESPACE_LABELS)}
{{- end }}

Install Linkerd, without the value of the first line if the cluster has the Gateway API:

  linkerd install --crds --set installGatewayAPI=true | kubectl apply -f -
  linkerd install --linkerd-cni-enabled | kubectl apply -f -

Pods that are already meshed keep their redirect until they are replaced.
{{- if eq (toString (.Values.repairController).deleteUnvalidated) "true" }}

NOTE: the value repairController.deleteUnvalidated is ignored: pods without a validator are reported, not evicted.
{{- end }}
`;

/** The Helm chart linkerd2-cni: its files, by path. */
export function linkerd2Cni(app: App): ReadonlyMap<string, string> {
  const chart = new HelmChart(app, "linkerd2-cni");
  new LinkerdCni(chart, "cni").addHelmTest();
  return chartFiles({
    chart,
    values,
    ignored: FORMER_VALUES,
    introduction,
    notes,
    metadata: chartMetadata({
      name: "linkerd2-cni",
      description: "The Linkerd CNI plugin: pods join the mesh without NET_ADMIN",
      keywords: ["linkerd", "cni", "service-mesh"],
      concerns: (change) => !concernsMultus(change),
      manual: "installer.md",
    }),
  });
}

/** The manifests that the chart renders by default, and its namespace. */
export function linkerdCniChart(app: App): Chart {
  const chart = new Chart(app, NAME);
  new LinkerdNamespace(chart, "namespace");
  new LinkerdCni(chart, "cni");
  return chart;
}

/** The same, as text. */
export const linkerdCniManifests = (app: App): string => writeManifests(linkerdCniChart(app).toJson());
