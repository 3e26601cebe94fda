import type { z } from "zod";
import { multusValues } from "../constructs/multus/values";
import { values } from "../constructs/values";
import { baseOf } from "../helm/base";
import { type Field, fieldsOf } from "../helm/fields";

/** A file with the props of a schema. */
interface PropsFile {
  readonly schema: z.ZodObject;
  /** The schema's file, relative to the project's root. */
  readonly source: string;
  /** The module from which the file imports the types of expressions. */
  readonly helm: string;
  /** Name of the values' type; the props' type appends "Props". */
  readonly type: string;
  /** Prefix of the names of the groups' interfaces. */
  readonly prefix: string;
}

/** The files of props, by path relative to the project's root. */
const FILES: Readonly<Record<string, PropsFile>> = {
  "constructs/props.ts": {
    schema: values,
    source: "constructs/values.ts",
    helm: "../helm/index",
    type: "Values",
    prefix: "",
  },
  "constructs/multus/props.ts": {
    schema: multusValues,
    source: "constructs/multus/values.ts",
    helm: "../../helm/index",
    type: "MultusValues",
    prefix: "Multus",
  },
};

const head = ({ helm, source }: PropsFile): string => `import type { Input } from "${helm}";

// Made from ${source} by synthesis: change it there, then run \`npm run build -- charts\`.

`;

/** The parts of a schema that its type needs. */
interface Definition {
  readonly entries?: Readonly<Record<string, string>>;
  readonly options?: readonly z.ZodType[];
  readonly element?: z.ZodType;
  readonly valueType?: z.ZodType;
  readonly catchall?: z.ZodType;
}

/** The width of the project's lines. */
const WIDTH = 120;

/** A value's type in TypeScript after some text, laid out as the project's formatter does. */
function typeText(schema: z.ZodType, before: string): string {
  const { type, schema: base } = baseOf(schema);
  const { def } = base as unknown as { def: Definition };
  switch (type) {
    case "string":
    case "boolean":
    case "number":
    case "unknown":
      return type;
    case "enum":
      return union(
        Object.values(def.entries ?? {}).map((choice) => JSON.stringify(choice)),
        before,
      );
    case "union":
      return union(
        (def.options ?? []).map((option) => typeText(option, before)),
        before,
      );
    case "array":
      return `readonly ${typeText(def.element as z.ZodType, `${before}readonly`)}[]`;
    case "record":
      return `Readonly<Record<string, ${typeText(def.valueType as z.ZodType, before)}>>`;
    case "object":
      return objectText(base as z.ZodObject, before, def.catchall !== undefined && def.catchall.type !== "never");
    default:
      throw new Error(`the type ${type} has no text in TypeScript`);
  }
}

const indentOf = (line: string): string => /^ */.exec(line)?.[0] ?? "";

function union(members: readonly string[], before: string): string {
  const line = members.join(" | ");
  if (before.length + 1 + line.length < WIDTH) return line;
  return members.map((member) => `\n${indentOf(before)}  | ${member}`).join("");
}

function objectText(schema: z.ZodObject, before: string, isOpen: boolean): string {
  const inner = `${indentOf(before)}  `;
  const fields = Object.entries(schema.shape as Readonly<Record<string, z.ZodType>>);
  const written = (start: string) => [
    ...fields.map(([name, field]) => {
      const { optional } = baseOf(field);
      const head = `${start}readonly ${quotedKey(name)}${optional ? "?" : ""}:`;
      const type = typeText(field, optional ? `${head} | undefined` : head);
      if (!optional) return `${head}${type.startsWith("\n") ? "" : " "}${type}`;
      if (!type.includes("\n")) return `${head} ${type} | undefined`;
      return `${head}\n${start}  | ${typeText(field, `${start}    `)}\n${start}  | undefined`;
    }),
    ...(isOpen ? [`${start}readonly [key: string]: unknown`] : []),
  ];
  const line = `{ ${written("").join("; ")} }`;
  if (!line.includes("\n") && before.length + line.length + "[];".length < WIDTH) return line;
  return ["{", ...written(inner).map((member) => `${member};`), `${indentOf(before)}}`].join("\n");
}

const quotedKey = (name: string): string => (/^\w+$/.test(name) ? name : JSON.stringify(name));

/** Wraps words at the project's width. */
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

/** An optional member, laid out as the project's formatter does. */
function declaration(key: string, type: string, indent: string): readonly string[] {
  const line = `${indent}readonly ${key}?: ${type} | undefined;`;
  if (line.length <= 120) return [line];
  return [`${indent}readonly ${key}?:`, `${indent}  | ${type}`, `${indent}  | undefined;`];
}

/** `ephemeral-storage` as part of a type's name: `EphemeralStorage`. */
const pascal = (key: string): string =>
  key
    .split("-")
    .map((part) => `${part.charAt(0).toUpperCase()}${part.slice(1)}`)
    .join("");

/** Writes the interfaces of one file: one for all values, and one for each group. */
class Interfaces {
  private readonly fields: ReadonlyMap<string, Field>;
  /** The text of each interface by name; a group precedes the interface that contains it. */
  private readonly made = new Map<string, string>();

  constructor(private readonly file: PropsFile) {
    this.fields = new Map(fieldsOf(file.schema).map((field) => [field.path.join("."), field]));
  }

  /** All interfaces, as text. */
  written(): string {
    const meaning = "The values of the chart: each one known, or in a Helm chart an expression.";
    const all = this.text(`${this.file.type}Props`, meaning, this.file.schema, []);
    const known = `export interface ${this.file.type} ${objectText(this.file.schema, "", false)}`;
    return [`/** All values of the chart, each known. */\n${known}`, ...this.made.values(), all].join("\n\n");
  }

  private text(name: string, meaning: string, schema: z.ZodObject, path: readonly string[]): string {
    const shape = schema.shape as Readonly<Record<string, z.ZodType>>;
    const members = Object.entries(shape).flatMap(([key, field]) => this.member(key, field, [...path, key]));
    return [`/** ${meaning} */`, `export interface ${name} {`, ...members, "}"].join("\n");
  }

  private member(name: string, schema: z.ZodType, path: readonly string[]): readonly string[] {
    const indent = "  ";
    const key = quotedKey(name);
    const field = this.fields.get(path.join("."));
    if (field !== undefined) return [...comment(field, indent), ...declaration(key, this.typeOf(schema, path), indent)];
    return declaration(key, this.group(baseOf(schema).schema as z.ZodObject, path), indent);
  }

  /**
   * The name of a group's interface. Equal groups share one, such as the resources of two containers. If two different
   * groups have the same key, the second name includes the name of the group around it.
   */
  private group(schema: z.ZodObject, path: readonly string[]): string {
    for (let depth = path.length - 1; depth >= 0; depth--) {
      const name = `${this.file.prefix}${path.slice(depth).map(pascal).join("")}Props`;
      const text = this.text(name, `The values in the group \`${path.at(-1)}\`.`, schema, path);
      const before = this.made.get(name);
      if (before === undefined || shape(before) === shape(text)) {
        if (before === undefined) this.made.set(name, text);
        return name;
      }
    }
    throw new Error(`no name is left for the group ${path.join(".")}`);
  }

  /** The type of one value: text may also be given as a number. */
  private typeOf(schema: z.ZodType, path: readonly string[]): string {
    const base = baseOf(schema);
    if (base.type === "string" && base.loose) return "Input<string | number>";
    const known = `${this.file.type}${path.map((key) => `["${key}"]`).join("")}`;
    return `Input<${base.optional ? `NonNullable<${known}>` : known}>`;
  }
}

/** The text of an interface without the paths of its values, to compare groups. */
const shape = (text: string): string => text.replace(/(\["[\w-]+"\])+(?=(\["[\w-]+"\]))/g, "");

/** The props of the constructs, with their TSDoc: files by path. */
export function propsSources(): ReadonlyMap<string, string> {
  const files = Object.entries(FILES).map(
    ([path, file]) => [path, `${head(file)}${new Interfaces(file).written()}\n`] as const,
  );
  return new Map(files);
}
