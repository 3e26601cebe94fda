import { type App, Chart } from "cdk8s";
import { CNI_NAME } from "../cni/contract";
import { LinkerdCni, LinkerdNamespace, PLATFORM_NAMES, PLATFORMS, values } from "../constructs";
import { NAMESPACE_LABELS } from "../constructs/namespace";
import { FORMER_VALUES } from "../constructs/values";
import { chartReference } from "../constructs/version";
import { chartFiles, HelmChart, writeManifests } from "../helm/index";
import { chartMetadata, concernsMultus, docs } from "./metadata";
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
Pods join the [Linkerd](https://linkerd.io) mesh without an init container that needs the capability NET_ADMIN: a CNI
plugin, which this chart installs on every node, redirects their traffic to the proxy. The chart replaces linkerd's chart
\`linkerd2-cni\` and keeps its values, resource names and annotations. It is an independent project, not part of Linkerd.

## Install

\`\`\`sh
${makeNamespace(CNI_NAME, NAMESPACE_LABELS)}
helm install linkerd-cni -n linkerd-cni ${chartReference("linkerd2-cni")}
helm test linkerd-cni -n linkerd-cni     # once its DaemonSet is ready
linkerd install --crds --set installGatewayAPI=true | kubectl apply -f -   # without --set if the cluster has the Gateway API
linkerd install --linkerd-cni-enabled | kubectl apply -f -
\`\`\`

The first label keeps Linkerd's webhooks from blocking the plugin's pods, which start before them. The second lets the
pods mount directories of the node. Add \`--set platform=NAME\` if [platforms](#platforms) has yours.
\`l5d-cni check --pre\` names what prevents an installation, and the values that your cluster needs:
[the command line](${docs("cli.md")}). From linkerd's chart: [migration](${docs("upgrade.md#migrate-from-linkerds-chart")}).

## Upgrade

\`\`\`sh
helm upgrade linkerd-cni -n linkerd-cni --reset-then-reuse-values ${chartReference("linkerd2-cni")}
\`\`\`

Meshed pods keep starting meanwhile. A version that does not work on a node stops the rollout there; \`helm rollback\`
takes it back. To change \`destCNINetDir\` or \`destCNIBinDir\`, uninstall first.

## Uninstall

\`\`\`sh
helm uninstall linkerd-cni -n linkerd-cni
\`\`\`

Each node gets its CNI configuration back, byte by byte, and running pods keep their redirect. With \`nodeTaint\` or
\`nri.require\`, read [what to do before](${docs("upgrade.md#uninstall")}).

## Compatibility

| | works with |
|---|---|
| Kubernetes | 1.25 or later |
| nodes | Linux on x86-64 or arm64; kernel 4.18 or later with nf_tables, or 4.11 with \`iptables-legacy\` |
| container runtime | tested with containerd 1.6, 2.2 and 2.3, and CRI-O 1.34 |
| Linkerd | tested with the command line and injector of linkerd2 b24cd40 (August 2026) |

GKE Autopilot and Fargate do not allow it. [Hosts](${docs("hosts.md")}) says what was tested and how.
[Documentation](${docs("README.md")}) has the rest: NRI, Multus, GitOps, operation, and the cdk8s constructs that
generate this chart.

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
{{- if not .Values.priorityClassName }}

With Multus, and with runtimes that pass no annotations to plugins (cri-dockerd, containerd before 1.5, CRI-O before
1.29), every pod waits while the installer of its node does not run: set priorityClassName=system-node-critical there.
{{- end }}
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
      manual: "README.md",
    }),
  });
}

/** The manifests that the chart renders by default, and its namespace. */
export function linkerdCniChart(app: App): Chart {
  const chart = new Chart(app, CNI_NAME);
  new LinkerdNamespace(chart, "namespace");
  new LinkerdCni(chart, "cni");
  return chart;
}

/** The same, as text. */
export const linkerdCniManifests = (app: App): string => writeManifests(linkerdCniChart(app).toJson());
