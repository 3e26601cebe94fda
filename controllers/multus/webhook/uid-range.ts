import { MAX_ID } from "../../../cni/ids";

/** User ids that a namespace's pods may run as. */
export interface UidRange {
  readonly first: number;
  readonly last: number;
}

const BLOCK = /^(?<first>\d{1,10})(?:\/(?<size>\d{1,10})|-(?<last>\d{1,10}))$/;

/** Reads `FIRST/SIZE` or `FIRST-LAST`, as OpenShift does; undefined where it is neither. */
export function parseUidRange(text: string): UidRange | undefined {
  const { first: low, size, last: high } = BLOCK.exec(text.trim())?.groups ?? {};
  if (low === undefined) return undefined;
  const first = Number(low);
  const last = size === undefined ? Number(high) : first + Number(size) - 1;
  return first <= last && last <= MAX_ID ? { first, last } : undefined;
}
