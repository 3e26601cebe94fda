import { eachItem, endOf, MAX_ITEMS, startOf } from "./lists";

/** Ports `low` to `high`, both included; a single port has both equal. */
export interface PortRange {
  readonly low: number;
  readonly high: number;
}

export const MAX_PORT = 0xffff;
const [PLUS, MINUS, ZERO] = [0x2b, 0x2d, 0x30] as const;

/** The port in a part of a text, as Go's `strconv.Atoi` reads it; NaN for anything else. White space around is allowed. */
function portAt(text: string, from: number, to: number): number {
  const end = endOf(text, from, to);
  let at = startOf(text, from, end);
  if (text.charCodeAt(at) === PLUS) at += 1;
  let port = at < end ? 0 : Number.NaN;
  for (; at < end && port <= MAX_PORT; at += 1) {
    const digit = text.charCodeAt(at) - ZERO;
    port = digit >= 0 && digit <= 9 ? port * 10 + digit : Number.NaN;
  }
  return port <= MAX_PORT ? port : Number.NaN;
}

/** A range as one number, which sorts by its low end; a hundred thousand of them take little memory. */
const pack = (low: number, high: number) => low * 0x1_0000 + high;

/** A port or a range `low-high` in a part of a text, packed; undefined for anything else. */
function rangeAt(text: string, from: number, to: number): number | undefined {
  let dash = from;
  while (dash < to && text.charCodeAt(dash) !== MINUS) dash += 1;
  const low = portAt(text, from, dash);
  const high = dash < to ? portAt(text, dash + 1, to) : low;
  return low <= high ? pack(low, high) : undefined;
}

const unpack = (packed: number): PortRange => ({ low: packed >>> 16, high: packed & MAX_PORT });

function merge(packed: readonly number[]): PortRange[] {
  const merged: { low: number; high: number }[] = [];
  // A typed array sorts numerically, without a call for each comparison.
  for (const each of Uint32Array.from(packed).sort()) {
    const range = unpack(each);
    const last = merged.at(-1);
    if (last === undefined || range.low > last.high + 1) merged.push(range);
    else last.high = Math.max(last.high, range.high);
  }
  return merged;
}

/** The same ports in ascending order; overlapping or adjacent ranges are merged. */
export function mergePorts(ranges: readonly PortRange[]): readonly PortRange[] {
  return merge(ranges.map(({ low, high }) => pack(low, high)));
}

/**
 * The ranges of a comma-separated list, in its order, and merged if there are more than {@link MAX_ITEMS}. Port 0 is
 * accepted, as in linkerd's plugin, although connections do not use it.
 * @param refuse is called with the first item that is neither a port nor a range `low-high`
 */
export function parsePorts(text: string, refuse: (item: string) => never): readonly PortRange[] {
  const packed: number[] = [];
  eachItem(text, (start, end) => {
    packed.push(rangeAt(text, start, end) ?? refuse(text.slice(start, end)));
  });
  return packed.length > MAX_ITEMS ? merge(packed) : packed.map(unpack);
}
