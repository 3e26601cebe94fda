import type { IConstruct } from "constructs";
import { HelmChart } from "./chart";
import { hasExpr, type Input, type Kind, ref } from "./expression";
import { bool, boolOrTrue, dict, int, orAbsent, orElse, orNumber, text } from "./functions";
import { isTrue } from "./go-values";
import { defaultOf, Reader } from "./read";
import { fieldsOf, type Value, type ValueMembers } from "./value";

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

/** References to values, group by group. */
export type Refs<M> = {
  readonly [Name in keyof M]: M[Name] extends Value<infer T, infer _> ? Reference<T> : Refs<M[Name]>;
};

type Reference<T> = undefined extends T ? Input<Exclude<T, undefined>> | undefined : Input<T>;

/** The props of a construct that takes its values from a definition: each may be left out, or be an expression. */
export type PropsOf<M> = {
  readonly [Name in keyof M]?: M[Name] extends Value<infer _, infer Given>
    ? Input<Exclude<Given, undefined>> | undefined
    : PropsOf<M[Name]> | undefined;
};

const kinds: Readonly<Record<Value["kind"], Kind>> = {
  int: "any",
  bool: "any",
  string: "string",
  quantity: "any",
  list: "list",
  map: "map",
  object: "map",
};

/** Go writes this number and larger ones with an exponent. */
const LARGE = 1_000_000;

function accepts(value: Value, given: unknown): boolean {
  const reader = new Reader(() => undefined);
  reader.value(value, given, []);
  return reader.problems.length === 0;
}

/**
 * A reference to one value, converted to its type and with its default if it is absent. Values can be absent because
 * users remove them by null, and because `helm upgrade --reuse-values` keeps the values of an older chart. An absent map
 * is empty, even if its default is not.
 */
export function reference(value: Value, path: readonly string[]): Input<unknown> {
  const { kind, form, about } = value;
  const usual = about.default;
  const isNumeric = kind === "string" && Array.isArray(form["type"]);
  const given: Input<never> = ref(isNumeric ? "any" : kinds[kind], ...path);
  if (kind === "map") return orElse(given, dict as never);
  if (kind === "list" && isTrue(usual)) return orAbsent(given, usual as never);
  if (kind === "bool") return usual === true ? boolOrTrue(given) : bool(given);
  // A quantity is left out if it is empty.
  const isScalar = kind === "int" || kind === "string" || (kind === "quantity" && usual !== "");
  // A text given as the number 0 is not empty.
  const isEmptyTaken = isNumeric || [0, ""].some((empty) => empty !== usual && accepts(value, empty));
  const filled = isScalar && usual !== undefined ? (isEmptyTaken ? orAbsent : orElse)(given, usual as never) : given;
  if (kind === "int") return int(filled);
  if (!isNumeric) return filled;
  return text(accepts(value, LARGE) ? orNumber(given, filled) : filled);
}

/** References to all values of a definition, under `.Values`. */
export function valueRefs<M extends ValueMembers>(values: M, path: readonly string[] = ["Values"]): Refs<M> {
  return new Reader((value, at) => reference(value, [...path, ...at])).group(values, {}) as Refs<M>;
}
