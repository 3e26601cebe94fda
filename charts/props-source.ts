import type { z } from "zod";
import { values } from "../constructs";
import { baseOf, type Field, fieldsOf } from "../constructs/helm";

const HEAD = `import type { Input } from "./helm";
import type { Values } from "./values";

// Made from constructs/values.ts by synthesis: change it there, then run \`npm run build -- charts\`.

/** The values of the chart: each one known, or in a Helm chart an expression. */
export interface ValuesProps {`;

const fields = new Map<string, Field>(fieldsOf(values).map((field) => [field.path.join("."), field]));

/** Words on lines that fit the project's width. */
function wrapped(text: string, start: string): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const line = lines.pop();
    if (line === undefined) lines.push(`${start}${word}`);
    else if (line.length + word.length < 120) lines.push(`${line} ${word}`);
    else lines.push(line, `${start}${word}`);
  }
  return lines;
}

function comment(field: Field, indent: string): readonly string[] {
  const fallback = `@default ${field.default === undefined ? "none" : JSON.stringify(field.default)}`;
  const line = `${indent}/** ${field.description}. ${fallback} */`;
  if (line.length <= 120) return [line];
  const start = `${indent} * `;
  return [`${indent}/**`, ...wrapped(`${field.description}.`, start), `${start}${fallback}`, `${indent} */`];
}

/** The type of one value: what is read as text may also be given as a number. */
function typeOf(schema: z.ZodType, path: readonly string[]): string {
  const base = baseOf(schema);
  if (base.type === "string" && base.loose) return "Input<string | number>";
  const known = `Values${path.map((key) => `["${key}"]`).join("")}`;
  return `Input<${base.optional ? `NonNullable<${known}>` : known}>`;
}

function member(name: string, schema: z.ZodType, path: readonly string[]): readonly string[] {
  const base = baseOf(schema);
  const indent = "  ".repeat(path.length);
  const key = /^\w+$/.test(name) ? name : JSON.stringify(name);
  const field = fields.get(path.join("."));
  if (field !== undefined) {
    return [...comment(field, indent), `${indent}readonly ${key}?: ${typeOf(schema, path)} | undefined;`];
  }
  return [`${indent}readonly ${key}?: {`, ...members(base.schema as z.ZodObject, path), `${indent}};`];
}

function members(schema: z.ZodObject, path: readonly string[]): readonly string[] {
  const shape = schema.shape as Readonly<Record<string, z.ZodType>>;
  return Object.entries(shape).flatMap(([name, field]) => member(name, field, [...path, name]));
}

/** constructs/props.ts: the props by which users of the constructs give values, with what is said about each. */
export const propsSource = (): string => `${[HEAD, ...members(values, []), "}"].join("\n")}\n`;
