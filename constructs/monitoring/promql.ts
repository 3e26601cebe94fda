/** The labels that identify a node's installer. */
export const NODE = "node, pod";

/**
 * The increase of counters in a window. `increase` alone ignores the first value of a series, and so misses the event
 * that created it; the full value of a series younger than the window counts.
 */
export const added = (series: string, window: string): string =>
  `(${series} unless ${series} offset ${window} or increase(${series}[${window}]))`;

/** A quantile of a histogram by labels; `series` is the histogram's name and selector. */
export function quantile(share: number, [name, selector]: readonly [string, string], window: string, by = ""): string {
  const labels = by === "" ? "le" : `le, ${by}`;
  return `histogram_quantile(${share}, sum by (${labels}) (rate(${name}_bucket${selector}[${window}])))`;
}
