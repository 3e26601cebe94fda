/** Ports `low` to `high`, both included; a single port has both equal. */
export interface PortRange {
  readonly low: number;
  readonly high: number;
}

const PORT_OR_RANGE = /^(\d{1,5})(?:\s*-\s*(\d{1,5}))?$/;
const MAX_PORT = 0xffff;

/** One port or one `low-high` range; undefined for anything else. White space around is allowed. */
export function parsePortRange(text: string): PortRange | undefined {
  const match = PORT_OR_RANGE.exec(text.trim());
  if (match === null) return undefined;
  const low = Number(match[1]);
  const high = match[2] === undefined ? low : Number(match[2]);
  return low >= 1 && low <= high && high <= MAX_PORT ? { low, high } : undefined;
}
