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
  present,
  toPrettyJson,
  when,
} from "../../helm/index";
import dashboard from "./dashboard.json";

type Labels = Readonly<Record<string, string>>;

/** An optional object, and the labels by which Prometheus or Grafana selects it. */
interface Requested {
  readonly enabled: Input<boolean>;
  readonly labels: Input<Labels>;
}

export interface PodMonitorProps {
  /** The name of every resource. */
  readonly name: string;
  /** The labels that select the pods. */
  readonly selector: Labels;
  /** The metadata of a resource, with additional labels. */
  readonly metadata: (added: Input<Labels>) => HelmMetadata;
  /** The endpoints with metrics. */
  readonly podMonitor: Requested & { readonly endpoints: readonly unknown[] };
}

export interface MonitoringProps extends PodMonitorProps {
  readonly namespace: Input<string>;
  /** The alerts; `job` is the PodMonitor's job name in Prometheus. */
  readonly prometheusRule: Requested & { readonly groups: (job: Input<string>) => readonly unknown[] };
  /** @default none */
  readonly dashboard?: Requested & { readonly folder: Input<string>; readonly json: Readonly<Record<string, unknown>> };
}

/** A kind of the Prometheus Operator. */
const operator = (kind: string): GroupVersionKind => ({ apiVersion: "monitoring.coreos.com/v1", kind });

/** How often Prometheus scrapes an endpoint, unless it decides itself. */
export const scraping = (values: Readonly<Record<"scrapeInterval" | "scrapeTimeout", Input<string>>>) => ({
  interval: present(values.scrapeInterval),
  scrapeTimeout: present(values.scrapeTimeout),
});

/** The optional PodMonitor of some pods. */
export class PodMonitor extends Construct {
  /** With `podMonitor.enabled`: Prometheus scrapes the pods. */
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

/** The objects for Prometheus and Grafana, each of them optional. */
export class Monitoring extends PodMonitor {
  /** With `prometheusRule.enabled`: the alerts. */
  readonly prometheusRule: ApiObject;
  /** The ConfigMap with a Grafana dashboard. @default none: the construct has no dashboard */
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
    // Grafana's sidecar selects by this label.
    const selected = metadata(merge(dashboard.labels, { grafana_dashboard: "1" }));
    this.dashboard = new HelmObject<k8s.KubeConfigMapProps>(this, "dashboard", k8s.KubeConfigMap.GVK, {
      when: dashboard.enabled,
      metadata: {
        ...selected,
        name: `${name}-dashboard`,
        annotations: { ...selected.annotations, grafana_folder: dashboard.folder },
      },
      data: { [`${name}.json`]: toPrettyJson(define(this, `${name}.dashboard`, dashboard.json)) },
    });
  }
}

type Panel = (typeof dashboard.panels)[number];

/** Each row of the dashboard with its panels, in the order of the file. */
function rowsOf(panels: readonly Panel[]): readonly (readonly Panel[])[] {
  const starts = panels.flatMap(({ type }, index) => (type === "row" ? [index] : []));
  return starts.map((start, row) => panels.slice(start, starts[row + 1]));
}

/** Whether panels query only metrics whose names begin with `prefix`. */
function asksOnly(panels: readonly Panel[], prefix: string): boolean {
  const metrics = JSON.stringify(panels).match(/\blinkerd_cni_\w+/g) ?? [];
  return metrics.length > 0 && metrics.every((name) => name.startsWith(prefix));
}

/**
 * The dashboard of dashboard.json, which Grafana can edit (Settings, JSON Model). Panels that show only the metrics of
 * a disabled feature are left out, as are rows that become empty.
 *
 * @param features - the prefix of each feature's metrics, and whether the feature is enabled
 */
export function dashboardFor(features: Readonly<Record<string, Input<boolean>>>): Readonly<Record<string, unknown>> {
  const guarded = (panel: Panel, asking: readonly Panel[]) => {
    const [, enabled = true] = Object.entries(features).find(([prefix]) => asksOnly(asking, prefix)) ?? [];
    return when(enabled, panel);
  };
  const rows = rowsOf(dashboard.panels);
  const panels = rows.flatMap((row) => row.map((panel) => guarded(panel, panel.type === "row" ? row : [panel])));
  return { ...dashboard, panels: panels.filter((panel) => panel !== undefined) };
}
