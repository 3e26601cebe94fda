/** Decides on which nodes a DaemonSet runs pods, as its controller does. Pure. */
import type { NodeObject, Taint } from "./types";

interface Requirement {
  readonly key?: string;
  readonly operator?: string;
  readonly values?: readonly string[];
}

interface Term {
  readonly matchExpressions?: readonly Requirement[];
  readonly matchFields?: readonly Requirement[];
}

interface Toleration {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
}

/** The scheduling fields of a pod's specification. */
export interface PlacementSpec {
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly affinity?: {
    readonly nodeAffinity?: {
      readonly requiredDuringSchedulingIgnoredDuringExecution?: { readonly nodeSelectorTerms?: readonly Term[] };
    };
  };
  readonly tolerations?: readonly Toleration[];
}

/** Undefined if unknown here. */
type Answer = boolean | undefined;

const all = (answers: readonly Answer[]): Answer =>
  answers.includes(undefined) ? undefined : answers.every((answer) => answer);

const any = (answers: readonly Answer[]): Answer =>
  answers.includes(true) ? true : answers.includes(undefined) ? undefined : false;

const isInteger = (text: string | undefined): text is string => text !== undefined && /^[-+]?\d+$/.test(text);

function compared(holds: (left: bigint, right: bigint) => boolean) {
  return (value: string | undefined, [bound]: readonly string[]): Answer => {
    if (!isInteger(bound)) return undefined;
    return isInteger(value) && holds(BigInt(value), BigInt(bound));
  };
}

const OPERATORS: Readonly<Record<string, (value: string | undefined, values: readonly string[]) => Answer>> = {
  In: (value, values) => value !== undefined && values.includes(value),
  NotIn: (value, values) => value === undefined || !values.includes(value),
  Exists: (value) => value !== undefined,
  DoesNotExist: (value) => value === undefined,
  Gt: compared((left, right) => left > right),
  Lt: compared((left, right) => left < right),
};

function meets({ operator = "", values = [] }: Requirement, value: string | undefined): Answer {
  return OPERATORS[operator]?.(value, values);
}

function inTerm({ matchExpressions = [], matchFields = [] }: Term, { metadata }: NodeObject): Answer {
  if (matchExpressions.length + matchFields.length === 0) return false; // as Kubernetes has it
  return all([
    ...matchExpressions.map((each) => meets(each, metadata?.labels?.[each.key ?? ""])),
    ...matchFields.map((each) => (each.key === "metadata.name" ? meets(each, metadata?.name) : undefined)),
  ]);
}

const labelText = (key: string, { metadata }: NodeObject): string => {
  const value = metadata?.labels?.[key];
  return value === undefined ? `no label ${key}` : `label ${key}=${value}`;
};

/** The label of the nodeSelector that a node lacks. */
function unmetSelector({ nodeSelector = {} }: PlacementSpec, node: NodeObject): string | undefined {
  const labels = node.metadata?.labels ?? {};
  const unmet = Object.entries(nodeSelector).find(([key, value]) => labels[key] !== value);
  return unmet && `nodeSelector requires ${unmet.join("=")}, and the node has ${labelText(unmet[0], node)}`;
}

/** Whether a node has the labels of the nodeSelector. */
export const isSelected = (spec: PlacementSpec, node: NodeObject): boolean => unmetSelector(spec, node) === undefined;

function unmetAffinity({ affinity }: PlacementSpec, node: NodeObject): string | undefined {
  const terms = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  if (terms === undefined || any(terms.map((term) => inTerm(term, node))) !== false) return undefined;
  const unmet = terms[0]?.matchExpressions?.find(
    (each) => meets(each, node.metadata?.labels?.[each.key ?? ""]) === false,
  );
  if (unmet === undefined) return "nodeAffinity requires what the node does not have";
  const { key = "", operator = "", values = [] } = unmet;
  const required = [key, operator, values.join(",")].filter((word) => word !== "").join(" ");
  return `nodeAffinity requires ${required}, and the node has ${labelText(key, node)}`;
}

function tolerates({ key = "", operator = "Equal", value = "", effect = "" }: Toleration, taint: Taint): Answer {
  if ((effect !== "" && effect !== taint.effect) || (key !== "" && key !== taint.key)) return false;
  if (operator === "Exists") return true;
  return operator === "Equal" || operator === "" ? value === (taint.value ?? "") : undefined;
}

/**
 * Ignores taints that Kubernetes sets for a node's condition; pods of a DaemonSet tolerate most of them automatically.
 */
const CONDITION = /^node\.(cloudprovider\.)?kubernetes\.io\//;
const KEEPS_AWAY = ["NoSchedule", "NoExecute"];

function untolerated({ tolerations = [] }: PlacementSpec, { spec }: NodeObject): string | undefined {
  const taint = (spec?.taints ?? []).find(
    (each) =>
      KEEPS_AWAY.includes(each.effect) &&
      !CONDITION.test(each.key) &&
      any(tolerations.map((toleration) => tolerates(toleration, each))) === false,
  );
  if (taint === undefined) return undefined;
  const value = (taint.value ?? "") === "" ? "" : `=${taint.value}`;
  return `tolerations do not cover the node's taint ${taint.key}${value}:${taint.effect}`;
}

/** Why a DaemonSet with this pod specification does not run a pod on a node; undefined if it does, or if unknown. */
export function whyNotPlaced(spec: PlacementSpec, node: NodeObject): string | undefined {
  return unmetSelector(spec, node) ?? unmetAffinity(spec, node) ?? untolerated(spec, node);
}
