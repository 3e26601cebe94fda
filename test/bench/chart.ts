/** One measured scenario: milliseconds of our plugin and, if measured, of the peer. */
interface Bar {
  readonly label: string;
  readonly ours: number;
  readonly peer?: number;
}

const WIDTH = 720;
const LEFT = 230;
const ROW = 46;
const BAR = 16;
const RIGHT = 70;
const TOP = 50;
/** On white, each with the contrast that text needs (4.5 to 1). */
const COLORS = { ours: "#0b7a55", peer: "#656d76", text: "#24292f", page: "#ffffff" };

function bar(y: number, value: number, scale: number, color: string): string {
  const width = Math.max(1, value * scale);
  return [
    `<rect x="${LEFT}" y="${y}" width="${width.toFixed(1)}" height="${BAR}" fill="${color}" rx="2"/>`,
    `<text x="${(LEFT + width + 6).toFixed(1)}" y="${y + 12}">${value.toFixed(1)} ms</text>`,
  ].join("\n");
}

/** A bar chart as SVG, with a background so that it is readable on light and on dark pages. Lower is better. */
export function chart(title: string, bars: readonly Bar[]): string {
  const most = Math.max(...bars.map(({ ours, peer = 0 }) => Math.max(ours, peer)));
  const scale = (WIDTH - LEFT - RIGHT) / most;
  const rows = bars.map(({ label, ours, peer }, index) => {
    const y = TOP + index * ROW;
    const lines = [
      `<text x="${LEFT - 10}" y="${y + 20}" text-anchor="end">${label}</text>`,
      bar(y, ours, scale, COLORS.ours),
      ...(peer === undefined ? [] : [bar(y + BAR + 3, peer, scale, COLORS.peer)]),
    ];
    return lines.join("\n");
  });
  const height = TOP + bars.length * ROW + 10;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="13" fill="${COLORS.text}">
<title>${title}</title>
<rect width="${WIDTH}" height="${height}" fill="${COLORS.page}" rx="6"/>
<text x="10" y="22" font-size="15" font-weight="bold">${title}: lower is better</text>
<rect x="${LEFT}" y="32" width="10" height="10" fill="${COLORS.ours}"/><text x="${LEFT + 15}" y="42">this project</text>
<rect x="${LEFT + 110}" y="32" width="10" height="10" fill="${COLORS.peer}"/><text x="${LEFT + 125}" y="42">linkerd's plugin</text>
${rows.join("\n")}
</svg>
`;
}
