import { App, Chart } from "cdk8s";
import { LinkerdCni, type LinkerdCniProps } from "./linkerd-cni";

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations?: object;
  };
  readonly [field: string]: unknown;
}

/** The manifests of an installation with these props. */
export function synthesized(props: LinkerdCniProps = {}): readonly Manifest[] {
  const chart = new Chart(new App(), "chart");
  new LinkerdCni(chart, "cni", props);
  return chart.toJson() as Manifest[];
}

export const found = (kind: string, props: LinkerdCniProps = {}) =>
  synthesized(props).find((item) => item.kind === kind);
export const rules = (props: LinkerdCniProps) => JSON.stringify(found("ClusterRole", props));
export const daemonSet = (props: LinkerdCniProps) => JSON.stringify(found("DaemonSet", props));
