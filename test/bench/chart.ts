import type { PluginResults } from "./tables";

const WIDTH = 720;
const LEFT = 310;
const ROW = 46;
const BAR = 16;
const RIGHT = 70;
const TOP = 50;
/** On the page, each with the contrast that text needs (4.5 to 1). */
const STYLE = `
text { fill: #24292f } .page { fill: #ffffff } .ours { fill: #0b7a55 } .peer { fill: #656d76 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .page { fill: #161b22 } .ours { fill: #2beda7 } .peer { fill: #8b98a5 }
}
`;

function bar(y: number, value: number, scale: number, whose: "ours" | "peer"): string {
  const width = Math.max(1, value * scale);
  return [
    `<rect x="${LEFT}" y="${y}" width="${width.toFixed(1)}" height="${BAR}" class="${whose}" rx="2"/>`,
    `<text x="${(LEFT + width + 6).toFixed(1)}" y="${y + 12}">${value.toFixed(1)} ms</text>`,
  ].join("\n");
}

/** The medians of single calls as a bar chart in SVG, for light and dark pages. */
export function picture({ scenarios }: PluginResults): string {
  const title = "Time of an ADD, median";
  const bars = scenarios.filter(({ parallel }) => parallel === 1);
  const most = Math.max(...bars.map(({ ours, peer }) => Math.max(ours.medianMs, peer?.medianMs ?? 0)));
  const scale = (WIDTH - LEFT - RIGHT) / most;
  const rows = bars.map(({ pod, delayMs, ours, peer }, index) => {
    const y = TOP + index * ROW;
    const answer = delayMs === 0 ? "at once" : `after ${delayMs} ms`;
    const label = `${pod === "meshed" ? pod : "not meshed"}, API server answers ${answer}`;
    const lines = [
      `<text x="${LEFT - 10}" y="${y + 20}" text-anchor="end">${label}</text>`,
      bar(y, ours.medianMs, scale, "ours"),
      ...(peer === undefined ? [] : [bar(y + BAR + 3, peer.medianMs, scale, "peer")]),
    ];
    return lines.join("\n");
  });
  const height = TOP + bars.length * ROW + 10;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="13">
<title>${title}</title>
<style>${STYLE}</style>
<rect width="${WIDTH}" height="${height}" class="page" rx="6"/>
<text x="10" y="22" font-size="15" font-weight="bold">${title}: lower is better</text>
<rect x="${LEFT}" y="32" width="10" height="10" class="ours"/><text x="${LEFT + 15}" y="42">this project</text>
<rect x="${LEFT + 110}" y="32" width="10" height="10" class="peer"/><text x="${LEFT + 125}" y="42">linkerd's plugin</text>
${rows.join("\n")}
</svg>
`;
}
