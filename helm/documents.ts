import { stringify } from "yaml";
import {
  choicesText,
  descriptionOf,
  type Field,
  isValue,
  type JsonSchema,
  type Value,
  type ValueMembers,
} from "./value";

/** A text in lines of a width. */
const wrapped = (text: string, width: number): readonly string[] =>
  text
    .replace(new RegExp(`(.{1,${width}}|\\S+)( |$)`, "g"), "$1\n")
    .trimEnd()
    .split("\n");

const inline = (value: unknown): string => JSON.stringify(value);

/** The description of a value, with its choices and its example. */
function sentence(field: Field): string {
  const choices = field.choices.length > 0 ? ` (one of ${choicesText(field.choices)})` : "";
  const examples = field.examples.length > 0 ? `; for example ${field.examples.map(inline).join(", ")}` : "";
  return `${field.description}${choices}${examples}`;
}

/** The comment over a value, in the form that helm-docs reads. */
function comment(field: Field, indent: string): readonly string[] {
  const [first = "", ...others] = wrapped(sentence(field), 110 - indent.length);
  return [`${indent}# -- ${first}`, ...others.map((line) => `${indent}# ${line}`)];
}

function entry(field: Field, key: string, indent: string): readonly string[] {
  if (field.default === undefined) return [`${indent}# ${key}:`];
  const empty = typeof field.default === "object" && field.default !== null && Object.keys(field.default).length === 0;
  const text = stringify({ [key]: field.default }, { lineWidth: 0, defaultStringType: "PLAIN" }).trimEnd();
  return empty ? [`${indent}${key}: ${inline(field.default)}`] : text.split("\n").map((line) => `${indent}${line}`);
}

/** Whether a group contains only comments: its name alone would mean null. */
const isBare = (group: readonly string[], fields: readonly Field[]): boolean =>
  !fields.some((field) => field.default !== undefined && group.every((key, depth) => field.path[depth] === key));

/** The groups that a value opens: the groups of its path that do not contain the previous value. */
function opened(path: readonly string[], before: readonly string[], fields: readonly Field[]): readonly string[] {
  const groups = path.slice(0, -1);
  const shared = groups.findIndex((key, depth) => before[depth] !== key);
  if (shared < 0) return [];
  return groups.slice(shared).map((key, index) => {
    const depth = shared + index;
    return `${"  ".repeat(depth)}${key}:${isBare(groups.slice(0, depth + 1), fields) ? " {}" : ""}`;
  });
}

/** values.yaml: every value with its default, below a comment that describes it. */
export function valuesYaml(fields: readonly Field[], head: string): string {
  const lines = fields.flatMap((field, index) => {
    const indent = "  ".repeat(field.path.length - 1);
    const key = field.path.at(-1) ?? "";
    const gap = field.path.length === 1 || index === 0 || field.path[0] !== fields[index - 1]?.path[0] ? [""] : [];
    const groups = opened(field.path, fields[index - 1]?.path.slice(0, -1) ?? [], fields);
    return [...gap, ...groups, ...comment(field, indent), ...entry(field, key, indent)];
  });
  return `${[`# ${head}`, ...lines].join("\n")}\n`;
}

const cell = (text: string): string => text.replaceAll("|", "\\|");

/** The values as a table in Markdown. */
export function valuesTable(fields: readonly Field[]): string {
  const rows = fields.map((field) => {
    const shown = field.default === undefined ? "" : `\`${inline(field.default)}\``;
    return `| ${field.path.join(".")} | ${field.type} | ${cell(shown)} | ${cell(sentence(field))} |`;
  });
  return ["| Value | Type | Default | Meaning |", "|---|---|---|---|", ...rows].join("\n");
}

/** Helm passes null on if the chart has no default to remove. */
function orNull({ type, ...form }: JsonSchema): JsonSchema {
  const choices = form["enum"] as readonly unknown[] | undefined;
  return { type: [type, "null"].flat(), ...form, ...(choices === undefined ? {} : { enum: [...choices, null] }) };
}

function objectForm(members: Readonly<Record<string, Value>>, isOpen: true | undefined): JsonSchema {
  const required = Object.keys(members).filter((name) => members[name]?.about.required === true);
  return {
    properties: Object.fromEntries(Object.entries(members).map(([name, member]) => [name, valueSchema(member)])),
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: isOpen === true ? {} : false,
  };
}

function formOf({ kind, form, members, isOpen }: Value): JsonSchema {
  if (members === undefined) return form;
  const object = objectForm(members, isOpen);
  return { ...form, ...(kind === "list" ? { items: { type: "object", ...object } } : object) };
}

function valueSchema(value: Value): JsonSchema {
  const { description, default: usual, examples, required } = value.about;
  const form = formOf(value);
  if (required === true) return { ...form, description };
  const about = { description, ...(examples === undefined ? {} : { examples }) };
  return usual === undefined ? { ...about, ...orNull(form) } : { default: usual, ...about, ...form };
}

type Path = readonly string[];

/** The JSON schemas of a group's values that a chart reads; without any, the chart does not have the group. */
function properties(group: ValueMembers, path: Path, isRead: (path: Path) => boolean): JsonSchema {
  const entries = Object.entries(group).flatMap(([name, member]): [string, JsonSchema][] => {
    const at = [...path, name];
    if (isValue(member)) return isRead(at) ? [[name, valueSchema(member)]] : [];
    const inner = properties(member, at, isRead);
    if (Object.keys(inner).length === 0) return [];
    const description = descriptionOf(member);
    const about = description === undefined ? {} : { description };
    return [[name, { ...about, type: "object", properties: inner, additionalProperties: false }]];
  });
  return Object.fromEntries(entries);
}

/**
 * The JSON schema of a chart's values. Only its root is open, for values that charts share: the chart's notes name those
 * that it does not know.
 */
export const valuesSchema = (values: ValueMembers, title: string, isRead: (path: Path) => boolean): JsonSchema => ({
  $schema: "http://json-schema.org/draft-07/schema#",
  title,
  type: "object",
  properties: properties(values, [], isRead),
  additionalProperties: true,
});
