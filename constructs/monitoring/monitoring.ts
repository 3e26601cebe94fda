import type { GroupVersionKind } from "cdk8s";
import { k8s } from "cdk8s-plus-27";
import { Construct } from "constructs";
import {
  and,
  concat,
  define,
  type HelmMetadata,
  HelmObject,
  type Input,
  merge,
  or,
  type Refs,
  toPrettyJson,
  when,
} from "../helm";
import { isServed } from "../pod";
import type { Values } from "../values";
import { alertGroups } from "./alerts";
import { dashboard } from "./dashboard";

type Labels = Readonly<Record<string, string>>;

export interface MonitoringProps {
  readonly values: Refs<Values>;
  /** The name of every resource. */
  readonly name: string;
  readonly namespace: Input<string>;
  /** What selects the pods. */
  readonly selector: Labels;
  /** The metadata of a resource, with some labels besides the common ones. */
  readonly metadata: (added: Input<Labels>) => HelmMetadata;
}

/** A kind of the Prometheus Operator. */
const operator = (kind: string): GroupVersionKind => ({ apiVersion: "monitoring.coreos.com/v1", kind });

/** The name of the node, which Prometheus does not know by itself; with what the API server would fill in. */
const NODE_LABEL = { action: "replace", sourceLabels: ["__meta_kubernetes_pod_node_name"], targetLabel: "node" };

/** What Prometheus and Grafana are given, each part on request. */
export class Monitoring extends Construct {
  constructor(
    scope: Construct,
    id: string,
    private readonly props: MonitoringProps,
  ) {
    super(scope, id);
    this.createPodMonitor();
    this.createPrometheusRule();
    this.createDashboard();
  }

  /** With `podMonitor.enabled`: Prometheus finds the metrics. */
  protected createPodMonitor(): void {
    const { metadata, selector, values } = this.props;
    const { healthPort, podMonitor, repairController } = values;
    const endpoint = (port: string) => ({ port, path: "/metrics", relabelings: [NODE_LABEL] });
    new HelmObject<{ spec: object }>(this, "pod-monitor", operator("PodMonitor"), {
      when: and(podMonitor.enabled, or(isServed(healthPort), repairController.enabled)),
      metadata: metadata(podMonitor.labels),
      spec: {
        selector: { matchLabels: selector },
        podMetricsEndpoints: [
          when(isServed(healthPort), endpoint("health")),
          when(repairController.enabled, endpoint("repair-admin")),
        ],
      },
    });
  }

  /** With `prometheusRule.enabled`: alerts. */
  protected createPrometheusRule(): void {
    const { metadata, name, namespace, values } = this.props;
    const { enabled, labels } = values.prometheusRule;
    // What the Prometheus Operator calls the targets of a PodMonitor.
    const job = concat(namespace, "/", name);
    new HelmObject<{ spec: object }>(this, "prometheus-rule", operator("PrometheusRule"), {
      when: enabled,
      metadata: metadata(labels),
      spec: { groups: alertGroups(values, job) },
    });
  }

  /** With `grafanaDashboard.enabled`: a dashboard, for the sidecar that puts such ConfigMaps into Grafana. */
  protected createDashboard(): void {
    const { metadata, name, values } = this.props;
    const { enabled, folder, labels } = values.grafanaDashboard;
    new HelmObject<k8s.KubeConfigMapProps>(this, "dashboard", k8s.KubeConfigMap.GVK, {
      when: enabled,
      metadata: {
        ...metadata(merge(labels, { grafana_dashboard: "1" })),
        name: `${name}-dashboard`,
        annotations: { grafana_folder: folder },
      },
      data: { [`${name}.json`]: toPrettyJson(define(this, `${name}.dashboard`, dashboard)) },
    });
  }
}
