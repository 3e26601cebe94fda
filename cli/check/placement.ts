import type { NodeObject, PodTemplate, Requirement, Toleration } from "./objects";

type Taint = NonNullable<NonNullable<NodeObject["spec"]>["taints"]>[number];

const labelText = (key: string, value: string | undefined) =>
  value === undefined ? `no label ${key}` : `label ${key}=${value}`;

function requirementText({ key, operator, values = [] }: Requirement): string {
  return [key, operator, values.join(",")].filter((word) => word !== undefined && word !== "").join(" ");
}

/** Whether a node is what a requirement wants, as the scheduler judges it. */
function meets(node: NodeObject, { key = "", operator, values = [] }: Requirement, isField: boolean): boolean {
  const found = isField ? node.metadata.name : node.metadata.labels?.[key];
  switch (operator) {
    case "In":
      return found !== undefined && values.includes(found);
    case "NotIn":
      return found === undefined || !values.includes(found);
    case "Exists":
      return found !== undefined;
    case "DoesNotExist":
      return found === undefined;
    case "Gt":
      return Number(found) > Number(values[0]);
    case "Lt":
      return Number(found) < Number(values[0]);
    default:
      return true;
  }
}

function unmetSelector(node: NodeObject, { nodeSelector = {} }: PodTemplate): string | undefined {
  const labels = node.metadata.labels ?? {};
  const unmet = Object.entries(nodeSelector).find(([key, value]) => labels[key] !== value);
  if (unmet === undefined) return undefined;
  const [key, value] = unmet;
  return `nodeSelector wants ${key}=${value}, and it has ${labelText(key, labels[key])}`;
}

function unmetAffinity(node: NodeObject, { affinity }: PodTemplate): string | undefined {
  const terms = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  if (terms === undefined) return undefined;
  const unmet = terms.map(({ matchExpressions = [], matchFields = [] }) => [
    ...matchExpressions.filter((each) => !meets(node, each, false)),
    ...matchFields.filter((each) => !meets(node, each, true)),
  ]);
  const [first] = unmet[0] ?? [];
  if (first === undefined || unmet.some((each) => each.length === 0)) return undefined;
  return `nodeAffinity wants ${requirementText(first)}, and it has ${labelText(first.key ?? "", node.metadata.labels?.[first.key ?? ""])}`;
}

/** DaemonSets tolerate by themselves what Kubernetes says of a node's state. */
const STATES = "node.kubernetes.io/";

function isTolerated({ key, value = "", effect }: Taint, tolerations: readonly Toleration[]): boolean {
  return tolerations.some(
    (each) =>
      (each.key === undefined || each.key === "" || each.key === key) &&
      (each.effect === undefined || each.effect === "" || each.effect === effect) &&
      (each.operator === "Exists" || (each.value ?? "") === value),
  );
}

function untolerated({ spec }: NodeObject, { tolerations = [] }: PodTemplate): string | undefined {
  const taint = (spec?.taints ?? []).find(
    (each) => each.effect !== "PreferNoSchedule" && !each.key.startsWith(STATES) && !isTolerated(each, tolerations),
  );
  if (taint === undefined) return undefined;
  const value = taint.value === undefined || taint.value === "" ? "" : `=${taint.value}`;
  return `tolerations do not cover its taint ${taint.key}${value}:${taint.effect}`;
}

/** Why a DaemonSet wants no pod on a node, by its template; undefined where the template does not say. */
export function whyNotWanted(node: NodeObject, template: PodTemplate): string | undefined {
  return unmetSelector(node, template) ?? unmetAffinity(node, template) ?? untolerated(node, template);
}

/** Whether a node is one of those that the chart is made for. */
export const isSelected = (node: NodeObject, template: PodTemplate): boolean =>
  unmetSelector(node, template) === undefined;
