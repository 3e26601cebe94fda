/** What labels tell one node's installer from another's. */
export const NODE = "node, pod";

/**
 * How much counters have grown in a time. `increase` alone takes a series' first value for its beginning, and so misses
 * what made the series appear; series younger than the window count as a whole.
 */
export const added = (series: string, window: string): string =>
  `(${series} unless ${series} offset ${window} or increase(${series}[${window}]))`;

/** A quantile of a histogram, by some labels; `series` is the histogram's name and its selector. */
export function quantile(share: number, [name, selector]: readonly [string, string], window: string, by = ""): string {
  const labels = by === "" ? "le" : `le, ${by}`;
  return `histogram_quantile(${share}, sum by (${labels}) (rate(${name}_bucket${selector}[${window}])))`;
}
