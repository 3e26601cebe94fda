import type { IConstruct } from "constructs";
import type { z } from "zod";
import { baseOf, defaultOf } from "./base";
import { HelmChart } from "./chart";
import { hasExpr, isExpr } from "./expression";
import { fieldsOf } from "./fields";
import { problemsOf } from "./problems";
import { type Refs, valueRefs } from "./refs";
import type { Schema } from "./value-schema";

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !isExpr(value);

/** A schema without its wrappers, and the schema of its items if it is a list or a map. */
function within(schema: z.ZodType | undefined, key: string): z.ZodType | undefined {
  if (schema === undefined) return undefined;
  const { shape, element } = baseOf(schema).schema as { shape?: Record<string, z.ZodType>; element?: z.ZodType };
  return shape?.[key] ?? element;
}

/**
 * Given values without nulls, as Helm removes them: a null value counts as not given and has its default, but a null
 * map is empty.
 */
export function withoutNulls(given: unknown, schema?: Schema<unknown>): unknown {
  return nullsTaken(given, schema as z.ZodType | undefined);
}

function nullsTaken(given: unknown, schema: z.ZodType | undefined): unknown {
  if (Array.isArray(given)) return given.map((item) => nullsTaken(item, within(schema, "")));
  if (!isFields(given)) return given;
  const entries = Object.entries(given).flatMap(([key, value]) => {
    const inner = within(schema, key);
    if (value !== null) return [[key, nullsTaken(value, inner)]];
    return inner === undefined ? [] : emptied(inner).map((empty) => [key, empty]);
  });
  return Object.fromEntries(entries);
}

/**
 * The replacement of a null value: a map becomes empty, a group contains its empty maps, everything else is removed.
 */
function emptied(schema: z.ZodType): readonly unknown[] {
  const { type, optional, schema: base } = baseOf(schema);
  if (type === "record") return [{}];
  if (type !== "object" || optional) return [];
  const { shape } = base as z.ZodObject;
  return [nullsTaken(Object.fromEntries(Object.keys(shape).map((key) => [key, null])), schema)];
}

/** Merges a map over its default recursively, as Helm merges the values of users over those of a chart. */
const overDefault = (usual: Fields, given: Fields): Fields => ({
  ...usual,
  ...Object.fromEntries(
    Object.entries(given).map(([key, value]) => {
      const under = usual[key];
      return [key, isFields(under) && isFields(value) ? overDefault(under, value) : value];
    }),
  ),
});

/** Given values, with the defaults of their maps. */
function withDefaultsOfMaps(given: Fields, { shape }: z.ZodObject): Fields {
  const entries = Object.entries(given).map(([key, value]) => {
    const field = shape[key] as z.ZodType | undefined;
    if (field === undefined || !isFields(value)) return [key, value];
    const { type, optional, schema } = baseOf(field);
    if (type === "object" && !optional) return [key, withDefaultsOfMaps(value, schema as z.ZodObject)];
    const usual = defaultOf(field);
    return [key, type === "record" && isFields(usual) ? overDefault(usual, value) : value];
  });
  return Object.fromEntries(entries);
}

/** Given values without expressions. */
function known(given: unknown): unknown {
  if (!isFields(given)) return given;
  return Object.fromEntries(
    Object.entries(given)
      .filter(([, value]) => !isExpr(value) && value !== undefined)
      .map(([key, value]) => [key, known(value)]),
  );
}

function keysOf(schema: z.ZodObject, path: readonly PropertyKey[]): readonly string[] {
  let keys = schema.shape as Readonly<Record<string, z.ZodType>>;
  for (const key of path) {
    const field = keys[String(key)];
    if (field === undefined) return [];
    const base = baseOf(field);
    if (base.type !== "object") return [];
    keys = (base.schema as z.ZodObject).shape;
  }
  return Object.keys(keys);
}

/** The values that a construct works with. */
export interface Inputs<T> {
  readonly values: Refs<T>;
  /** Problems of the given values, one sentence each. If there are any, `values` has the defaults. */
  readonly problems: readonly string[];
}

/** Merges given values over a base, group by group. */
function overlay(base: Fields, read: Fields, given: Fields): Fields {
  const entries = Object.entries(given)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => {
      const under = base[key];
      const inner = read[key];
      if (isExpr(value)) return [key, value];
      return [key, isFields(value) && isFields(under) && isFields(inner) ? overlay(under, inner, value) : inner];
    });
  return { ...base, ...Object.fromEntries(entries) };
}

/** The values given to a construct, and the path of the others in a Helm chart. */
export interface Source {
  readonly given: object;
  /** Names of values that are accepted and ignored. @default none */
  readonly ignored?: readonly string[] | undefined;
  /** @default ["Values"] */
  readonly path?: readonly string[] | undefined;
}

/**
 * The values that a construct works with. A value that is not given is a reference to `.Values` in a Helm chart, and
 * the default elsewhere.
 */
export function inputsOf<T extends object>(
  scope: IConstruct,
  typed: Schema<T>,
  { given: all, ignored = [], path }: Source,
): Inputs<T> {
  const schema = typed as unknown as z.ZodObject;
  const used = Object.fromEntries(Object.entries(all).filter(([name]) => !ignored.includes(name)));
  const given = withoutNulls(withDefaultsOfMaps(used, schema), typed) as Fields;
  const parsed = schema.safeParse(known(given));
  const problems = parsed.success ? [] : problemsOf(parsed.error, given, (path) => keysOf(schema, path));
  const read = (parsed.success ? parsed.data : schema.parse({})) as Fields;
  const chart = HelmChart.find(scope);
  const inChart = chart !== undefined;
  chart?.owned.push(...fieldsOf(schema).map((field) => [...(path ?? ["Values"]), ...field.path]));
  if (!inChart && hasExpr(given)) throw new Error("expressions are for constructs in a HelmChart");
  const base = inChart ? (valueRefs(typed, path) as Fields) : read;
  const right = parsed.success ? given : {};
  return { values: overlay(base, read, right) as Refs<T>, problems };
}
