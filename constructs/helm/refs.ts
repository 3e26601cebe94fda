import type { z } from "zod";
import { type Input, type Kind, ref } from "./expression";
import { bool, int, text } from "./functions";

/** A closed object becomes an object of references; lists, free maps and optional values are referred to as a whole. */
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

interface Base {
  readonly type: string;
  readonly schema: z.ZodType;
  /** The value may come as another type and is converted. */
  readonly loose: boolean;
  readonly optional: boolean;
}

/** What stands under defaults, options and conversions. */
export function baseOf(schema: z.ZodType): Base {
  const { def } = schema as unknown as { def: { type: string; innerType?: z.ZodType; out?: z.ZodType } };
  if (def.innerType !== undefined) {
    const inner = baseOf(def.innerType);
    return { ...inner, optional: inner.optional || def.type === "optional" };
  }
  if (def.type === "pipe" && def.out !== undefined) return { ...baseOf(def.out), loose: true };
  return { type: def.type, schema, loose: false, optional: false };
}

const kinds: Readonly<Record<string, Kind>> = {
  string: "string",
  enum: "string",
  array: "list",
  record: "map",
  object: "map",
};

/** A reference to one value that converts it to its type, as reading concrete values does. */
function leaf(base: Base, path: readonly string[]): Input<unknown> {
  if (base.type === "number") return int(ref("any", ...path));
  if (base.type === "boolean") return bool(ref("any", ...path));
  if (base.type === "string" && base.loose) return text(ref("any", ...path));
  return ref(kinds[base.type] ?? "any", ...path);
}

/** References to all values that a schema describes, under `.Values`. */
export function valueRefs<T extends z.ZodObject>(schema: T, path: readonly string[] = ["Values"]): Refs<z.output<T>> {
  const entries = Object.entries(schema.shape).map(([key, field]) => {
    const base = baseOf(field as z.ZodType);
    const closed = base.type === "object" && !base.optional;
    const at = [...path, key];
    return [key, closed ? valueRefs(base.schema as z.ZodObject, at) : leaf(base, at)];
  });
  return Object.fromEntries(entries) as Refs<z.output<T>>;
}
