import { Chart, type ChartProps } from "cdk8s";
import type { Construct, IConstruct } from "constructs";
import { type Expr, type Input, ref } from "./expression";

const HELM_CHART = Symbol.for("cdk8s-helm-chart.HelmChart");

/** A chart that becomes a Helm chart: the constructs in it render expressions as template text. */
export class HelmChart extends Chart {
  private readonly defined = new Map<string, Readonly<Record<string, unknown>>>();
  private readonly listed = new Map<string, Expr<unknown>>();

  constructor(scope: Construct, id: string, props: ChartProps = {}) {
    super(scope, id, props);
    Object.defineProperty(this, HELM_CHART, { value: true });
  }

  /** The Helm chart that contains a construct, if any. */
  static find(construct: IConstruct): HelmChart | undefined {
    return construct.node.scopes.find((scope): scope is HelmChart => HELM_CHART in scope);
  }

  /** Values of constructs, by path. The chart contains only those that its templates read. */
  readonly owned: (readonly string[])[] = [];

  /** Named templates, by name. */
  get definitions(): ReadonlyMap<string, Readonly<Record<string, unknown>>> {
    return this.defined;
  }

  /** Lists of whole manifests. */
  get lists(): readonly Expr<unknown>[] {
    return [...this.listed.values()];
  }

  /** Adds the manifests that a value lists. A value is added only once. */
  addList(list: Expr<unknown>): void {
    this.listed.set(JSON.stringify(list), list);
  }

  /** Defines a named template for data, so that templates can include it as a whole. */
  define(name: string, data: Readonly<Record<string, unknown>>): Expr<Readonly<Record<string, unknown>>> {
    const before = this.defined.get(name);
    if (before !== undefined && JSON.stringify(before) !== JSON.stringify(data)) {
      throw new Error(`two named templates are called ${name}: give them different names`);
    }
    this.defined.set(name, data);
    const root = ref("map");
    const included: Expr<string> = { $helm: { op: "call", name: "include", args: [name, root], kind: "string" } };
    return { $helm: { op: "call", name: "fromYaml", subject: included, kind: "map" } };
  }
}

/** Data as a whole: in a Helm chart a named template, elsewhere the data itself. */
export function define(
  scope: IConstruct,
  name: string,
  data: Readonly<Record<string, unknown>>,
): Input<Readonly<Record<string, unknown>>> {
  return HelmChart.find(scope)?.define(name, data) ?? data;
}

/** The Helm release of a chart. */
export const release = {
  /** The name of the release. */
  name: ref<string>("string", "Release", "Name"),
  /** The namespace of the release. */
  namespace: ref<string>("string", "Release", "Namespace"),
} as const;

/** The cluster that Helm renders for. */
export const capabilities = {
  /** The version of Kubernetes, such as `v1.34.1`. */
  kubeVersion: ref<string>("string", "Capabilities", "KubeVersion", "Version"),
  /** Whether the cluster has at least a version such as `1.30`; a vendor's suffix is ignored. */
  atLeast: (version: string): Expr<boolean> => {
    const subject = capabilities.kubeVersion;
    return { $helm: { op: "call", name: "semverCompare", args: [`>=${version}-0`], subject, kind: "bool" } };
  },
  /** Whether the cluster has an API, such as `monitoring.coreos.com/v1`. */
  has: (api: string): Expr<boolean> => ({
    $helm: { op: "call", name: ".Capabilities.APIVersions.Has", args: [api], kind: "bool" },
  }),
} as const;
