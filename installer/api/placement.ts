import type { Taint } from "./node-taint";

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

/** What a pod's specification says about the nodes that it may run on. */
export interface PlacementSpec {
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly affinity?: {
    readonly nodeAffinity?: {
      readonly requiredDuringSchedulingIgnoredDuringExecution?: { readonly nodeSelectorTerms?: readonly Term[] };
    };
  };
  readonly tolerations?: readonly Toleration[];
}

export interface NodeObject {
  readonly metadata?: { readonly name?: string; readonly labels?: Readonly<Record<string, string>> };
  readonly spec?: { readonly taints?: readonly Taint[] };
}

/** Undefined: it cannot be told here. */
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

function isSelected({ nodeSelector = {}, affinity }: PlacementSpec, node: NodeObject): Answer {
  const labels = node.metadata?.labels ?? {};
  const selector = Object.entries(nodeSelector).map(([key, value]) => labels[key] === value);
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const terms = required?.nodeSelectorTerms?.map((term) => inTerm(term, node));
  return all([...selector, ...(required === undefined ? [] : [terms === undefined ? undefined : any(terms)])]);
}

function tolerates({ key = "", operator = "Equal", value = "", effect = "" }: Toleration, taint: Taint): Answer {
  if ((effect !== "" && effect !== taint.effect) || (key !== "" && key !== taint.key)) return false;
  if (operator === "Exists") return true;
  return operator === "Equal" || operator === "" ? value === (taint.value ?? "") : undefined;
}

/** Kubernetes' own tell of a node's condition, which passes; pods of a DaemonSet are made to tolerate most of them. */
const CONDITION = /^node\.(cloudprovider\.)?kubernetes\.io\//;
const KEEPS_AWAY = ["NoSchedule", "NoExecute"];

/**
 * Why a DaemonSet of this pod specification wants no pod on a node, as its controller judges; undefined where it wants
 * one, and where that cannot be told.
 */
export function unwantedOn(spec: PlacementSpec, node: NodeObject): string | undefined {
  if (isSelected(spec, node) === false) return "its nodeSelector or nodeAffinity";
  const taints = (node.spec?.taints ?? []).filter(
    ({ key, effect }) => KEEPS_AWAY.includes(effect) && !CONDITION.test(key),
  );
  const repelling = taints.find(
    (taint) => any((spec.tolerations ?? []).map((each) => tolerates(each, taint))) === false,
  );
  return repelling && `its tolerations and the node's taint ${repelling.key}:${repelling.effect}`;
}
