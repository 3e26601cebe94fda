import type { IConstruct } from "constructs";
import { HelmChart } from "./chart";
import { hasExpr } from "./expression";
import { fieldsOf } from "./fields";
import { defaultOf, Reader } from "./read";
import { type Refs, reference } from "./refs";
import type { Value, ValueMembers } from "./value";

/** The values that a construct works with. */
export interface Inputs<M> {
  /** Given values, and references or defaults for the others. */
  readonly values: Refs<M>;
  /** Problems of the given values, one sentence each. If there are any, `values` has the defaults. */
  readonly problems: readonly string[];
}

/** The values given to a construct, and the path of the others in a Helm chart. */
export interface Source {
  /** The values given as props. */
  readonly given: object;
  /** Names of values that are accepted and ignored. @default none */
  readonly ignored?: readonly string[] | undefined;
  /** The path of the other values. @default ["Values"] */
  readonly path?: readonly string[] | undefined;
}

/**
 * The values that a construct works with. A value that is not given is a reference to `.Values` in a Helm chart, and
 * the default elsewhere.
 */
export function inputsOf<M extends ValueMembers>(
  scope: IConstruct,
  values: M,
  { given: all, ignored = [], path = ["Values"] }: Source,
): Inputs<M> {
  const given = Object.fromEntries(Object.entries(all).filter(([name]) => !ignored.includes(name)));
  const chart = HelmChart.find(scope);
  if (chart === undefined && hasExpr(given)) throw new Error("expressions are for constructs in a HelmChart");
  chart?.owned.push(...fieldsOf(values).map((field) => [...path, ...field.path]));
  const inChart = (value: Value, at: readonly string[]) => reference(value, [...path, ...at]);
  const absent = chart === undefined ? defaultOf : inChart;
  const reader = new Reader(absent);
  const read = reader.group(values, given);
  const { problems } = reader;
  return { values: (problems.length === 0 ? read : new Reader(absent).group(values, {})) as Refs<M>, problems };
}
