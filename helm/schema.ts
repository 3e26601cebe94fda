import { descriptionOf, isValue, type JsonSchema, type Value, type ValueMembers } from "./value";

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
