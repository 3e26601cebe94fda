import type { GroupVersionKind } from "cdk8s";
import { Construct } from "constructs";
import { type HelmMetadata, HelmObject, type Input, type Refs, when } from "../helm";
import type { Values } from "../values";

type Labels = Readonly<Record<string, string>>;

export interface MonitoringProps {
  readonly values: Refs<Values>;
  /** What selects the pods. */
  readonly selector: Labels;
  /** The metadata of a resource, with some labels besides the common ones. */
  readonly metadata: (added: Input<Labels>) => HelmMetadata;
}

/** Of the Prometheus Operator. */
const POD_MONITOR: GroupVersionKind = { apiVersion: "monitoring.coreos.com/v1", kind: "PodMonitor" };

/** What Prometheus is given, each part on request. */
export class Monitoring extends Construct {
  constructor(
    scope: Construct,
    id: string,
    private readonly props: MonitoringProps,
  ) {
    super(scope, id);
    this.createPodMonitor();
  }

  /** With `podMonitor.enabled`: Prometheus finds the metrics. */
  protected createPodMonitor(): void {
    const { metadata, selector, values } = this.props;
    const { podMonitor, repairController } = values;
    HelmObject.on<{ spec: object }>(this, "pod-monitor", POD_MONITOR, {
      when: podMonitor.enabled,
      metadata: metadata(podMonitor.labels),
      spec: {
        selector: { matchLabels: selector },
        podMetricsEndpoints: [
          { port: "health", path: "/metrics" },
          when(repairController.enabled, { port: "admin-http", path: "/metrics" }),
        ],
      },
    });
  }
}
