import { z } from "zod";
import { rangePattern } from "./range";

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

/** Numbers and booleans may come as text, as `--set-string` passes them; a port list of one port comes as a number. */
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
  // Helm passes null on where the chart has no default that it could take away.
  if (def.type === "optional") nullable(jsonSchema);
  if (def.type === "record" && jsonSchema.additionalProperties !== undefined) nullable(jsonSchema.additionalProperties);
  if (def.type === "object" && jsonSchema.required !== undefined) {
    // Null takes a default away.
    const { shape } = zodSchema as z.ZodObject;
    const required = jsonSchema.required.filter((key) => !(shape[key] as z.ZodType).safeParse(undefined).success);
    if (required.length > 0) jsonSchema.required = required;
    else delete jsonSchema.required;
  }
}

/** What a parent chart may pass besides values: `global`, and the switch that a dependency's `condition` names. */
const fromParents = {
  global: { type: "object", description: "Values that Helm shares between a chart and its subcharts" },
  enabled: { type: ["boolean", "string"], description: "For charts that switch this one on and off as a dependency" },
};

/**
 * The JSON schema of a chart's values: closed at every level, besides what comes from parent charts.
 * @param ignored values that the chart takes and does not use: why, by name
 */
export function valuesSchema(
  schema: z.ZodObject,
  title: string,
  ignored: Readonly<Record<string, string>> = {},
): Readonly<Record<string, unknown>> {
  const made = z.toJSONSchema(schema, { target: "draft-7", override: (context) => loosen(context as Overridden) });
  const { $schema, ...rest } = made;
  const others = Object.entries(ignored).map(([key, why]) => [key, { description: `Ignored: ${why}` }]);
  return { $schema, title, ...rest, properties: { ...fromParents, ...made.properties, ...Object.fromEntries(others) } };
}
