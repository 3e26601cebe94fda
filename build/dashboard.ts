import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { dashboard } from "../constructs/monitoring/dashboard";
import { root } from "./paths";

/** Pixels of a column and of a line of Grafana's grid, and of the gap between panels. */
const COLUMN = 40;
const LINE = 22;
const GAP = 6;
const NAME = 12;
const COLORS = ["#2beda7", "#5794f2", "#ff9830", "#b877d9"];

export const SKETCH = join("docs", "dashboard.svg");

const colorOf = (index: number): string => COLORS[index % COLORS.length] ?? "";

type Panel = (typeof dashboard)["panels"][number];

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

const boxOf = ({ gridPos: { x, y, w, h } }: Panel): Box => ({
  x: x * COLUMN + GAP / 2,
  y: y * LINE + GAP / 2,
  width: w * COLUMN - GAP,
  height: h * LINE - GAP,
});

const label = (x: number, y: number, text: string, more = "") =>
  `<text x="${x}" y="${y}"${more}>${escaped(text)}</text>`;

/** A curve that stands for any, over the names of so many. */
function curve({ x, y, width, height }: Box, index: number, names: number): string {
  const points = Array.from({ length: 13 }, (_, step) => {
    const level = 0.5 + 0.3 * Math.sin(step * 0.9 + index * 2) * Math.cos(step * 0.4 + index);
    return `${(x + 12 + (step * (width - 24)) / 12).toFixed(1)},${(y + 28 + level * (height - 40 - names * NAME)).toFixed(1)}`;
  });
  return `<polyline points="${points.join(" ")}" fill="none" stroke="${colorOf(index)}" stroke-width="1.5"/>`;
}

/** What stands in a panel instead of values. */
function content(panel: Panel, box: Box): readonly string[] {
  if (!("targets" in panel)) return [];
  if (panel.type === "stat") {
    return [label(box.x + box.width / 2, box.y + box.height - 18, "n", ' font-size="26" text-anchor="middle"')];
  }
  const { targets } = panel;
  return targets.flatMap(({ legendFormat }, index) => {
    const y = box.y + box.height - 8 - (targets.length - 1 - index) * NAME;
    const mark = `<rect x="${box.x + 10}" y="${y - 5}" width="8" height="2" fill="${colorOf(index)}"/>`;
    return [curve(box, index, targets.length), mark, label(box.x + 22, y, legendFormat, ' font-size="10"')];
  });
}

function drawn(panel: Panel): readonly string[] {
  const box = boxOf(panel);
  if (panel.type === "row") return [label(box.x + 4, box.y + 12, `▾ ${panel.title}`, ' font-weight="bold"')];
  const { x, y, width, height } = box;
  const frame = `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="3" fill="none" stroke="#80889060"/>`;
  return [frame, label(x + 10, y + 18, panel.title), ...content(panel, box)];
}

/** The dashboard's panels as they lie on the page, with curves that mean nothing; reads on light and on dark pages. */
export function sketch(): string {
  const height = Math.max(...dashboard.panels.map(({ gridPos: { y, h } }) => y + h)) * LINE;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 ${height}" font-family="sans-serif" font-size="12" fill="#808890">
<title>${escaped(dashboard.title)}: sketch of the dashboard</title>
${dashboard.panels.flatMap(drawn).join("\n")}
</svg>
`;
}

/** Writes the sketch into docs. */
export async function writeSketch(): Promise<void> {
  const path = join(root, SKETCH);
  await writeFile(`${path}.new`, sketch());
  await rename(`${path}.new`, path);
}
