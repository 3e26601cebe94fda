/** User and group ids of the proxy, wherever they are written: in the stanza, in an annotation, in a range. */

/** The highest id: the number above it means "no id" to the kernel. */
export const MAX_ID = 0xffff_fffe;

/** Whether a number is an id, or below 1, which means none, as for linkerd's plugin. */
export function isIdOrNone(number: number): boolean {
  return Number.isInteger(number) && number <= MAX_ID;
}

/** The id that a number stands for. Root is never the proxy's. */
export function idOf(number: number): number | undefined {
  return number >= 1 ? number : undefined;
}
