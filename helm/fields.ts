import type { z } from "zod";
import { baseOf } from "./base";

/** One value, as shown in documents. */
export interface Field {
  /** Its full path. */
  readonly path: readonly string[];
  /** The type as readers know it. */
  readonly type: string;
  readonly description: string;
  /** Undefined if the value has none. */
  readonly default: unknown;
  readonly examples: readonly unknown[];
  /** Allowed values, if they are few. */
  readonly choices: readonly string[];
}

const names: Readonly<Record<string, string>> = {
  number: "int",
  boolean: "bool",
  enum: "string",
  array: "list",
  record: "object",
  union: "string",
};

function fieldOf(schema: z.ZodType, path: readonly string[]): Field {
  const base = baseOf(schema);
  const meta = schema.meta() as { description?: string; examples?: readonly unknown[] } | undefined;
  if (meta?.description === undefined) throw new Error(`value ${path.join(".")} has no description`);
  const options = (base.schema as { options?: readonly unknown[] }).options ?? [];
  return {
    path,
    type: names[base.type] ?? base.type,
    description: meta.description,
    default: (schema.def as { defaultValue?: unknown }).defaultValue,
    examples: meta.examples ?? [],
    choices: base.type === "enum" ? options.map(String) : [],
  };
}

/** Allowed values as text; the empty string is quoted. */
export const choicesText = (choices: readonly unknown[]): string =>
  choices.map((choice) => (choice === "" ? '""' : String(choice))).join(", ");

/** All values of a schema in its order, with groups flattened. */
export function fieldsOf(schema: z.ZodObject, path: readonly string[] = []): readonly Field[] {
  return Object.entries(schema.shape).flatMap(([key, value]) => {
    const base = baseOf(value as z.ZodType);
    const at = [...path, key];
    if (base.type === "object" && !base.optional) return fieldsOf(base.schema as z.ZodObject, at);
    return [fieldOf(value as z.ZodType, at)];
  });
}
