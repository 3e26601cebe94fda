import { Container } from "../../cni/contract";
import { concat, type Input, type Refs, text, when } from "../../helm/index";
import type { Values } from "../values";
import { type Alert, alertGroup, VALUE } from "./alert";
import { added, NODE, quantile } from "./promql";

const WINDOW = "15m";
const REPAIR = "linkerd_cni_repair_controller_";
const ON_NODE = "On node {{ $labels.node }} ({{ $labels.pod }})";

/** Fewer calls do not give a meaningful quantile. */
const FEW_CALLS = 10;
const ADD = `{verb="ADD"}`;

function installerAlerts(values: Refs<Values>, job: Input<string>): readonly Alert[] {
  const { addErrors, addMilliseconds, contests, notReadyMinutes } = values.prometheusRule;
  const notReady = concat(text(notReadyMinutes), "m");
  const contested = `sum by (${NODE}, file) (${added("linkerd_cni_config_contested", WINDOW)})`;
  const failed = `sum by (${NODE}, code) (${added('linkerd_cni_plugin_calls_total{verb="ADD", code!=""}', WINDOW)})`;
  const p99 = quantile(0.99, ["linkerd_cni_plugin_seconds", ADD], WINDOW, NODE);
  const calls = `sum by (${NODE}) (${added(`linkerd_cni_plugin_seconds_count${ADD}`, WINDOW)})`;
  return [
    {
      alert: "LinkerdCNINotReady",
      severity: "critical",
      // While a rollout is held, the node's former pod keeps working beside the new one.
      expr: 'linkerd_cni_ready == 0 unless on (node) linkerd_cni_ready{node!=""} == 1',
      for: notReady,
      summary: "Meshed pods cannot start on a node",
      description: `${ON_NODE} the chain is not complete, or pods cannot be looked up.`,
    },
    {
      alert: "LinkerdCNIRolloutHeld",
      severity: "warning",
      expr: 'linkerd_cni_ready == 0 and on (node) linkerd_cni_ready{node!=""} == 1',
      for: notReady,
      summary: "The pod of a new version does not become ready",
      description: `${ON_NODE} the new pod does not work; the former one keeps the node chained, and the rollout waits.`,
    },
    {
      alert: "LinkerdCNIDown",
      // The job's name is known only for the targets of our PodMonitor.
      only: values.podMonitor.enabled,
      severity: "critical",
      expr: concat('up{job="', job, `", container="${Container.installer}"} == 0`),
      for: notReady,
      summary: "A node's installer does not answer",
      description: `${ON_NODE} Prometheus gets no metrics: the chain is no longer kept up to date, and pods may wait for look-ups.`,
    },
    {
      alert: "LinkerdCNIConfigContested",
      severity: "warning",
      expr: concat(contested, " >= ", contests),
      summary: "Another program keeps changing a node's CNI configuration",
      description: `${ON_NODE} Another program has taken the plugin out of {{ $labels.file }} ${VALUE} times in 15 minutes.`,
    },
    {
      alert: "LinkerdCNIAddErrors",
      severity: "warning",
      expr: concat(failed, " >= ", addErrors),
      summary: "Pods of a node fail to start",
      description: `${ON_NODE} ${VALUE} ADD calls ended in code {{ $labels.code }} in 15 minutes.`,
    },
    {
      alert: "LinkerdCNIAddSlow",
      severity: "warning",
      expr: concat(`1000 * ${p99} > `, addMilliseconds, ` and on (${NODE}) ${calls} >= ${FEW_CALLS}`),
      for: "10m",
      summary: "Pods of a node wait long for the plugin",
      description: `${ON_NODE} the slowest hundredth of ADD calls takes ${VALUE} ms or more.`,
    },
    {
      alert: "LinkerdCNIApiUnreachable",
      severity: "warning",
      expr: "linkerd_cni_api_server_reachable == 0",
      for: "5m",
      summary: "A node does not reach the API server",
      description: `${ON_NODE} the installer gets no answer: meshed pods that no annotation describes cannot start.`,
    },
  ];
}

function repairAlerts(): readonly Alert[] {
  return [
    {
      alert: "LinkerdCNIRepairSuspended",
      severity: "warning",
      expr: `${REPAIR}suspended_owners > 0`,
      summary: "Pods keep coming back broken",
      description: `${ON_NODE} the pods of ${VALUE} owners keep coming back without redirect; the repair controller no longer deletes them.`,
    },
    {
      alert: "LinkerdCNINotRepaired",
      severity: "warning",
      expr: `${REPAIR}pods_broken > 0 unless ${REPAIR}suspended_owners > 0`,
      for: "15m",
      summary: "Broken pods are not replaced",
      description: `${ON_NODE} ${VALUE} pods without redirect are waiting to be deleted, or no controller would replace them.`,
    },
    {
      alert: "LinkerdCNINotRedirected",
      severity: "warning",
      expr: `${REPAIR}pods_not_redirected > 0`,
      for: "10m",
      summary: "Pods run outside the mesh",
      description: `${ON_NODE} meshed pods whose connections bypass the proxy: ${VALUE}.`,
    },
  ];
}

function nriAlerts({ chained, podMonitor, prometheusRule }: Refs<Values>, job: Input<string>): readonly Alert[] {
  const notConnected = "linkerd_cni_nri_connected == 0";
  const left = 'linkerd_cni_nri_pods_total{event="synchronize", outcome=~"edited|refused|failed"}';
  return [
    {
      alert: "LinkerdCNINriNotConnected",
      // With chaining it is a second line of defence; without chaining nothing else redirects.
      severity: when(chained, "warning", "critical") as Input<string>,
      expr: when(
        podMonitor.enabled,
        concat(`${notConnected} or up{job="`, job, `-nri", container="${Container.nri}"} == 0`),
        notConnected,
      ) as Input<string>,
      for: concat(text(prometheusRule.notReadyMinutes), "m"),
      summary: "The NRI plugin of a node sees no pods start",
      description: `${ON_NODE} the container runtime has not taken the NRI plugin, or the plugin does not answer.`,
    },
    {
      alert: "LinkerdCNIRedirectNotMended",
      severity: "warning",
      expr: `sum by (${NODE}) (${added(left, WINDOW)}) > 0`,
      summary: "Running pods may lack their redirect",
      description: `${ON_NODE} the NRI plugin has left ${VALUE} running pods as they are: their rules were edited, or it could not tell what they need.`,
    },
  ];
}

/** The groups of a PrometheusRule, in the form of Prometheus' own rule files. */
export function alertGroups(values: Refs<Values>, job: Input<string>) {
  const { runbookUrl } = values.prometheusRule;
  const { nri, repairController } = values;
  return [
    alertGroup("linkerd-cni", installerAlerts(values, job), runbookUrl),
    when(repairController.enabled, alertGroup("linkerd-cni-repair", repairAlerts(), runbookUrl)),
    when(nri.enabled, alertGroup("linkerd-cni-nri", nriAlerts(values, job), runbookUrl)),
  ];
}
