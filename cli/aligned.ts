import { stripVTControlCharacters } from "node:util";

const widthOf = (cell: string): number => stripVTControlCharacters(cell).length;

/** Rows with aligned columns, without lines; colours do not count as width. */
export function aligned(rows: readonly (readonly string[])[]): string {
  const columns = Math.max(0, ...rows.map(({ length }) => length));
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...rows.map((row) => widthOf(row[column] ?? ""))),
  );
  const padded = (cell: string, column: number) => cell + " ".repeat((widths[column] ?? 0) + 2 - widthOf(cell));
  return rows.map((row) => `${row.map(padded).join("").trimEnd()}\n`).join("");
}
