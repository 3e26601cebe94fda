import { join } from "node:path";
import { App, Chart } from "cdk8s";
import { LinkerdCni, type LinkerdCniProps, LinkerdMultus, type LinkerdMultusProps } from "../../constructs";
import { multusValues } from "../../constructs/multus/values";
import { values } from "../../constructs/values";
import type { ValueMembers } from "../../helm/value";
import { documents, type Rendered, root, run } from "./helm";

/** A Helm chart of this project and its sources. */
export interface OwnChart {
  readonly name: string;
  /** Its folder. */
  readonly path: string;
  readonly values: ValueMembers;
  /** Adds the constructs, with some values. */
  readonly make: (scope: Chart, set: object, namespace: string) => void;
}

const folder = (name: string): string => join(root, "dist", "charts", name);

export const linkerd2Cni: OwnChart = {
  name: "linkerd2-cni",
  path: folder("linkerd2-cni"),
  values,
  make: (scope, set, namespace) =>
    void new LinkerdCni(scope, "cni", { ...(set as LinkerdCniProps), namespace }).addHelmTest(),
};

export const linkerdMultus: OwnChart = {
  name: "linkerd-multus",
  path: folder("linkerd-multus"),
  values: multusValues,
  make: (scope, set, namespace) =>
    void new LinkerdMultus(scope, "multus", { ...(set as LinkerdMultusProps), namespace }),
};

/** All charts, each with its name, as tables of tests have them. */
export const ownCharts = [linkerd2Cni, linkerdMultus].map((chart) => [chart.name, chart] as const);

/** The constructs' manifests for given values. */
export function constructed(chart: OwnChart, set: object, namespace: string): readonly Rendered[] {
  const scope = new Chart(new App(), "chart");
  chart.make(scope, set, namespace);
  return scope.toJson() as Rendered[];
}

/** The text that helm renders in a namespace, with some flags. */
export const renderedText = ({ name, path }: OwnChart, namespace: string, ...flags: readonly string[]): string =>
  run("template", name, path, "--namespace", namespace, ...flags);

/** The objects that helm renders in a namespace, with some flags. */
export const rendered = (chart: OwnChart, namespace: string, ...flags: readonly string[]): readonly Rendered[] =>
  documents(renderedText(chart, namespace, ...flags));
