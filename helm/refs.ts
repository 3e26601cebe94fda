import type { z } from "zod";
import { baseOf, defaultOf } from "./base";
import { type Input, type Kind, ref } from "./expression";
import { bool, boolOrTrue, dict, int, orAbsent, orElse, orNumber, text } from "./functions";
import { isTrue } from "./go-values";
import type { Schema, ValuesIn } from "./value-schema";

/** A closed object becomes an object of references; lists, free maps and optional values get one reference each. */
export type Refs<T> = {
  readonly [Key in keyof T]: undefined extends T[Key] ? Input<Exclude<T[Key], undefined>> | undefined : Ref<T[Key]>;
};

type Ref<T> = T extends readonly unknown[]
  ? Input<T>
  : T extends object
    ? string extends keyof T
      ? Input<T>
      : Refs<T>
    : Input<T>;

/** The props of a construct that takes its values from a schema: each may be left out, or be an expression. */
export type PropsOf<S extends Schema<unknown>> = Props<ValuesIn<S>>;

type Props<T> = { readonly [Key in keyof T]?: Prop<Exclude<T[Key], undefined>> | undefined };

type Prop<T> = T extends readonly unknown[]
  ? Input<T>
  : T extends object
    ? string extends keyof T
      ? Input<T>
      : Props<T>
    : Input<T>;

const kinds: Readonly<Record<string, Kind>> = {
  string: "string",
  enum: "string",
  array: "list",
  record: "map",
  object: "map",
};

/** Go writes this number and larger ones with an exponent. */
const LARGE = 1_000_000;

/**
 * A reference to one value, converted to its type and with its default if it is absent. Values can be absent because
 * users remove them by null, and because `helm upgrade --reuse-values` keeps the values of an older chart. An absent map
 * is empty, even if its default is not.
 */
function leaf(schema: z.ZodType, path: readonly string[]): Input<unknown> {
  const base = baseOf(schema);
  const usual = defaultOf(schema);
  const kind = base.loose ? "any" : (kinds[base.type] ?? "any");
  const value: Input<never> = ref(kind, ...path);
  if (base.type === "record") return orElse(value, dict as never);
  if (base.type === "array" && isTrue(usual)) return orAbsent(value, usual as never);
  if (base.type === "boolean") return usual === true ? boolOrTrue(value) : bool(value);
  // A value that may be a number or a text is left out if it is empty.
  const isQuantity = base.type === "union" && usual !== "";
  const isScalar = (isQuantity || ["number", "string", "enum"].includes(base.type)) && usual !== undefined;
  const isEmptyTaken = [0, ""].some((empty) => empty !== usual && schema.safeParse(empty).success);
  // A text given as the number 0 is not empty.
  const isZeroText = base.type === "string" && base.loose;
  const filled = isScalar ? (isEmptyTaken || isZeroText ? orAbsent : orElse)(value, usual as never) : value;
  if (base.type === "number") return int(filled);
  if (base.type !== "string" || !base.loose) return filled;
  return text(schema.safeParse(LARGE).success ? orNumber(value, filled) : filled);
}

/** References to all values that a schema describes, under `.Values`. */
export function valueRefs<T extends object>(schema: Schema<T>, path: readonly string[] = ["Values"]): Refs<T> {
  const { shape } = schema as unknown as z.ZodObject;
  const entries = Object.entries(shape as Readonly<Record<string, z.ZodType>>).map(([key, field]) => {
    const base = baseOf(field);
    const closed = base.type === "object" && !base.optional;
    const at = [...path, key];
    return [key, closed ? valueRefs(base.schema as unknown as Schema<object>, at) : leaf(field, at)];
  });
  return Object.fromEntries(entries) as Refs<T>;
}
