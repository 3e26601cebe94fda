import { z } from "zod";

interface JsonSchema {
  type?: string | readonly string[];
  pattern?: string;
  enum?: readonly unknown[];
  minimum?: number;
  maximum?: number;
  properties?: Readonly<Record<string, unknown>>;
  additionalProperties?: JsonSchema;
  required?: string[];
}

interface Overridden {
  readonly zodSchema: unknown;
  readonly jsonSchema: JsonSchema;
}

/** Numbers and booleans may be text, as `--set-string` passes them; a list of one port may be a number. */
const loosened: Readonly<Record<string, (schema: JsonSchema) => void>> = {
  integer: (schema) => {
    schema.type = ["integer", "string"];
    schema.pattern = `^${rangePattern(schema.minimum ?? 0, schema.maximum ?? Number.MAX_SAFE_INTEGER)}$`;
  },
  boolean: (schema) => {
    schema.type = ["boolean", "string"];
    schema.enum = [true, false, "true", "false"];
  },
  string: (schema) => {
    schema.type = ["string", "number"];
  },
};

function nullable(schema: JsonSchema): void {
  if (typeof schema.type !== "string") return;
  schema.type = [schema.type, "null"];
  if (schema.enum !== undefined) schema.enum = [...schema.enum, null];
}

function loosen({ zodSchema, jsonSchema }: Overridden): void {
  const { def } = zodSchema as z.ZodType;
  if (def.type === "pipe" && typeof jsonSchema.type === "string") loosened[jsonSchema.type]?.(jsonSchema);
  // Helm passes null on if the chart has no default to remove.
  if (def.type === "optional") nullable(jsonSchema);
  if (def.type === "record" && jsonSchema.additionalProperties !== undefined) nullable(jsonSchema.additionalProperties);
  if (def.type === "object" && jsonSchema.required !== undefined) {
    // Null removes a default.
    const { shape } = zodSchema as z.ZodObject;
    const required = jsonSchema.required.filter((key) => !(shape[key] as z.ZodType).safeParse(undefined).success);
    if (required.length > 0) jsonSchema.required = required;
    else delete jsonSchema.required;
  }
}

interface SchemaOptions {
  /** Values that the chart does not accept. @default none */
  readonly unused?: readonly (readonly string[])[];
}

/** A JSON schema without one of its values, and without the group that becomes empty. */
function without(schema: JsonSchema, [key = "", ...rest]: readonly string[]): JsonSchema {
  const { [key]: inner, ...others } = (schema.properties ?? {}) as Readonly<Record<string, JsonSchema>>;
  const kept = inner === undefined || rest.length === 0 ? undefined : without(inner, rest);
  const isEmpty = kept === undefined || Object.keys(kept.properties ?? {}).length === 0;
  const required = schema.required?.filter((name) => name !== key || !isEmpty);
  return {
    ...schema,
    properties: isEmpty ? others : { ...schema.properties, [key]: kept },
    ...(required === undefined ? {} : { required }),
  };
}

/**
 * The JSON schema of a chart's values. Only its root is open, for values that charts share: the chart's notes name those
 * that it does not know.
 */
export function valuesSchema(
  schema: z.ZodObject,
  title: string,
  { unused = [] }: SchemaOptions = {},
): Readonly<Record<string, unknown>> {
  const made = z.toJSONSchema(schema, { target: "draft-7", override: (context) => loosen(context as Overridden) });
  const { $schema, ...rest } = unused.reduce<JsonSchema>(without, made as JsonSchema) as typeof made;
  return { $schema, title, ...rest, additionalProperties: true };
}

/** A regular expression for the decimal texts of all whole numbers from `low` to `high`, without leading zeros. */
export function rangePattern(low: number, high: number): string {
  const negative = low < 0 ? naturals(Math.max(1, -high), -low).map((part) => `-${part}`) : [];
  const natural = high >= 0 ? naturals(Math.max(0, low), high) : [];
  return `(${[...negative, ...natural].join("|")})`;
}

/** One alternative for each block of numbers that share their leading digits. */
function naturals(low: number, high: number): string[] {
  const parts: string[] = [];
  for (let from = low; from <= high; ) {
    const to = blockEnd(from, high);
    parts.push(block(String(from), String(to)));
    from = to + 1;
  }
  return parts;
}

/** The end of the largest block that starts at a number and that one digit range per place describes. */
function blockEnd(from: number, high: number): number {
  let end = from;
  for (let unit = 10; from % (unit / 10) === 0; unit *= 10) {
    const digit = Math.floor(from / (unit / 10)) % 10;
    const reach = Math.min(9, Math.floor((high - from + 1) / (unit / 10)) - 1 + digit);
    if (reach < digit) break;
    end = from + (reach - digit + 1) * (unit / 10) - 1;
    if (digit !== 0 || reach !== 9 || from === 0) break;
  }
  return end;
}

function block(from: string, to: string): string {
  const digits = [...from].map((low, index) => {
    const top = to.charAt(index);
    return low === top ? low : `[${low}-${top}]`;
  });
  return digits.join("");
}
