import type { z } from "zod";
import { multusValues, values } from "../constructs";
import { baseOf, type Field, fieldsOf } from "../constructs/helm";

/** A file with the props that belong to a schema. */
interface PropsFile {
  readonly schema: z.ZodObject;
  /** The schema's file, from the project's root on. */
  readonly source: string;
  /** Where the file imports the types of expressions from. */
  readonly helm: string;
  /** Name of the values' type; the props' is that and "Props". */
  readonly type: string;
}

/** The files of props, by path from the project's root on. */
const FILES: Readonly<Record<string, PropsFile>> = {
  "constructs/props.ts": { schema: values, source: "constructs/values.ts", helm: "./helm", type: "Values" },
  "constructs/multus/props.ts": {
    schema: multusValues,
    source: "constructs/multus/values.ts",
    helm: "../helm",
    type: "MultusValues",
  },
};

const head = ({ helm, source, type }: PropsFile): string => `import type { Input } from "${helm}";
import type { ${type} } from "./values";

// Made from ${source} by synthesis: change it there, then run \`npm run build -- charts\`.

/** The values of the chart: each one known, or in a Helm chart an expression. */
export interface ${type}Props {`;

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

/** A member that may be left out, as the project's formatter lays it out. */
function declaration(key: string, type: string, indent: string): readonly string[] {
  const line = `${indent}readonly ${key}?: ${type} | undefined;`;
  if (line.length <= 120) return [line];
  return [`${indent}readonly ${key}?:`, `${indent}  | ${type}`, `${indent}  | undefined;`];
}

/** Writes the members of one interface. */
class Members {
  private readonly fields: ReadonlyMap<string, Field>;

  constructor(private readonly file: PropsFile) {
    this.fields = new Map(fieldsOf(file.schema).map((field) => [field.path.join("."), field]));
  }

  of(schema: z.ZodObject, path: readonly string[]): readonly string[] {
    const shape = schema.shape as Readonly<Record<string, z.ZodType>>;
    return Object.entries(shape).flatMap(([name, field]) => this.member(name, field, [...path, name]));
  }

  private member(name: string, schema: z.ZodType, path: readonly string[]): readonly string[] {
    const indent = "  ".repeat(path.length);
    const key = /^\w+$/.test(name) ? name : JSON.stringify(name);
    const field = this.fields.get(path.join("."));
    if (field !== undefined) return [...comment(field, indent), ...declaration(key, this.typeOf(schema, path), indent)];
    return [`${indent}readonly ${key}?: {`, ...this.of(baseOf(schema).schema as z.ZodObject, path), `${indent}};`];
  }

  /** The type of one value: what is read as text may also be given as a number. */
  private typeOf(schema: z.ZodType, path: readonly string[]): string {
    const base = baseOf(schema);
    if (base.type === "string" && base.loose) return "Input<string | number>";
    const known = `${this.file.type}${path.map((key) => `["${key}"]`).join("")}`;
    return `Input<${base.optional ? `NonNullable<${known}>` : known}>`;
  }
}

/** The props by which users of the constructs give values, with what is said about each: files by path. */
export function propsSources(): ReadonlyMap<string, string> {
  const files = Object.entries(FILES).map(([path, file]) => {
    const lines = [head(file), ...new Members(file).of(file.schema, []), "}"];
    return [path, `${lines.join("\n")}\n`] as const;
  });
  return new Map(files);
}
