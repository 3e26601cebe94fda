import type { ApiObject, GroupVersionKind } from "cdk8s";
import { k8s } from "cdk8s-plus-27";
import { Construct } from "constructs";
import {
  concat,
  define,
  type HelmMetadata,
  HelmObject,
  type Input,
  lazily,
  merge,
  toPrettyJson,
} from "../../helm/index";

type Labels = Readonly<Record<string, string>>;

/** Something that is created on request, and labels by which Prometheus or Grafana finds it. */
interface Requested {
  readonly enabled: Input<boolean>;
  readonly labels: Input<Labels>;
}

export interface PodMonitorProps {
  /** The name of every resource. */
  readonly name: string;
  /** What selects the pods. */
  readonly selector: Labels;
  /** The metadata of a resource, with some labels besides the common ones. */
  readonly metadata: (added: Input<Labels>) => HelmMetadata;
  /** The endpoints with metrics. */
  readonly podMonitor: Requested & { readonly endpoints: readonly unknown[] };
}

export interface MonitoringProps extends PodMonitorProps {
  readonly namespace: Input<string>;
  /** The alerts; `job` is what Prometheus calls the targets of the PodMonitor. */
  readonly prometheusRule: Requested & { readonly groups: (job: Input<string>) => readonly unknown[] };
  /** @default none */
  readonly dashboard?: Requested & { readonly folder: Input<string>; readonly json: Readonly<Record<string, unknown>> };
}

/** A kind of the Prometheus Operator. */
const operator = (kind: string): GroupVersionKind => ({ apiVersion: "monitoring.coreos.com/v1", kind });

/** Where Prometheus finds the metrics of some pods, on request. */
export class PodMonitor extends Construct {
  readonly podMonitor: ApiObject;

  constructor(scope: Construct, id: string, { name, selector, metadata, podMonitor }: PodMonitorProps) {
    super(scope, id);
    this.podMonitor = new HelmObject<{ spec: object }>(this, "pod-monitor", operator("PodMonitor"), {
      when: podMonitor.enabled,
      metadata: { ...metadata(podMonitor.labels), name },
      spec: { selector: { matchLabels: selector }, podMetricsEndpoints: podMonitor.endpoints },
    });
  }
}

/** What Prometheus and Grafana are given, each part on request. */
export class Monitoring extends PodMonitor {
  readonly prometheusRule: ApiObject;
  /** The ConfigMap with a dashboard of Grafana. @default none: the construct has no dashboard */
  readonly dashboard: ApiObject | undefined;

  constructor(scope: Construct, id: string, props: MonitoringProps) {
    super(scope, id, props);
    const { dashboard, metadata, name, namespace, prometheusRule } = props;
    this.prometheusRule = new HelmObject<{ spec: object }>(this, "prometheus-rule", operator("PrometheusRule"), {
      when: prometheusRule.enabled,
      metadata: metadata(prometheusRule.labels),
      spec: lazily(() => ({ groups: prometheusRule.groups(concat(namespace, "/", name)) })),
    });
    if (dashboard === undefined) return;
    // The sidecar of Grafana looks for this label.
    this.dashboard = new HelmObject<k8s.KubeConfigMapProps>(this, "dashboard", k8s.KubeConfigMap.GVK, {
      when: dashboard.enabled,
      metadata: {
        ...metadata(merge(dashboard.labels, { grafana_dashboard: "1" })),
        name: `${name}-dashboard`,
        annotations: { grafana_folder: dashboard.folder },
      },
      data: { [`${name}.json`]: toPrettyJson(define(this, `${name}.dashboard`, dashboard.json)) },
    });
  }
}
