import Table from "cli-table3";
import { fieldsOf } from "../constructs/helm/fields";
import { values } from "../constructs/values";
import type { Format } from "./resources";

/** All values: their names, types, defaults and meaning. */
export function valuesTable(format: Format | "table", width: number): string {
  const fields = fieldsOf(values).map(({ path, ...field }) => ({ name: path.join("."), ...field }));
  if (format === "json") return `${JSON.stringify(fields, undefined, 2)}\n`;
  const rows = fields.map(({ name, type, default: value }) => [name, type, JSON.stringify(value) ?? ""]);
  const fixed = [0, 1, 2].map((column) => 2 + Math.max(...rows.map((row) => (row[column] ?? "").length)));
  const meaning = Math.max(30, width - fixed.reduce((sum, column) => sum + column, 0) - 5);
  const table = new Table({
    head: ["Value", "Type", "Default", "Meaning"],
    colWidths: [...fixed, meaning],
    wordWrap: true,
    style: { head: [], border: [], compact: true },
  });
  for (const [index, { description }] of fields.entries()) table.push([...(rows[index] ?? []), description]);
  return `${table.toString()}\n`;
}
