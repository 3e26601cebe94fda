import Table, { type TableConstructorOptions } from "cli-table3";

type Chars = NonNullable<TableConstructorOptions["chars"]>;

const SIDES = ["top", "bottom", "left", "right"] as const;
const JOINTS = ["mid", "left", "right"] as const;
const NO_LINES = Object.fromEntries([
  ...SIDES.flatMap((side) => [side, ...JOINTS.map((joint) => `${side}-${joint}`)].map((name) => [name, ""])),
  ...["mid", "mid-mid", "middle"].map((name) => [name, ""]),
]) as Chars;

/** Rows with aligned columns, without lines; colours do not count as width. */
export function aligned(rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return "";
  const style = { head: [], border: [], compact: true, "padding-left": 0, "padding-right": 2 };
  const table = new Table({ chars: NO_LINES, style });
  for (const row of rows) table.push([...row]);
  return `${table.toString().replace(/ +$/gm, "")}\n`;
}
