import { values } from "../constructs/values";
import { choicesText, type Field, fieldsOf } from "../helm/fields";
import { nearest } from "../helm/problems";
import { indented } from "./wrap";

const DEFAULT_COLUMNS = 80;

const nameOf = ({ path }: Field): string => path.join(".");

/** The values of a name: one value, or those of a group. @throws an Error that suggests another name */
function named(name: string): readonly Field[] {
  const all = fieldsOf(values);
  const found = all.filter((field) => nameOf(field) === name || nameOf(field).startsWith(`${name}.`));
  if (found.length > 0) return found;
  const guess = nearest(name, all.map(nameOf));
  throw new Error(`${name} is not a value${guess === undefined ? "" : `: did you mean ${guess}?`}`);
}

function block(field: Field, columns: number): string {
  const { type, description, default: value, choices } = field;
  const facts = [type, ...(value === undefined ? [] : [`default ${JSON.stringify(value)}`])].join(", ");
  const allowed = choices.length === 0 ? [] : indented(`One of ${choicesText(choices)}`, 4, columns);
  return [nameOf(field), ...indented(facts, 4, columns), ...indented(description, 4, columns), ...allowed, ""].join(
    "\n",
  );
}

/**
 * The values of the chart: name, type, default and meaning.
 * @param name of a value or of a group. @default all
 * @param columns of the terminal. @default 80
 * @throws an Error if there is no such value
 */
export function valuesText(
  format: "text" | "json",
  name: string | undefined,
  columns: number = DEFAULT_COLUMNS,
): string {
  const fields = name === undefined ? fieldsOf(values) : named(name);
  if (format === "text") return fields.map((field) => block(field, columns)).join("\n");
  const listed = fields.map(({ path, ...field }) => ({ name: path.join("."), ...field }));
  return `${JSON.stringify(listed, undefined, 2)}\n`;
}
