import type { z } from "zod";
import { baseOf } from "./base";

/** One value as documents show it. */
export interface Field {
  /** Its name, from the root on. */
  readonly path: readonly string[];
  /** The type as a reader knows it. */
  readonly type: string;
  readonly description: string;
  /** Undefined where the value has none. */
  readonly default: unknown;
  readonly examples: readonly unknown[];
  /** Values allowed, where they are few. */
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

/** Values allowed, as text; the empty one in quotes. */
export const choicesText = (choices: readonly unknown[]): string =>
  choices.map((choice) => (choice === "" ? '""' : String(choice))).join(", ");

/** All values of a schema in its order, groups taken apart. */
export function fieldsOf(schema: z.ZodObject, path: readonly string[] = []): readonly Field[] {
  return Object.entries(schema.shape).flatMap(([key, value]) => {
    const base = baseOf(value as z.ZodType);
    const at = [...path, key];
    if (base.type === "object" && !base.optional) return fieldsOf(base.schema as z.ZodObject, at);
    return [fieldOf(value as z.ZodType, at)];
  });
}
