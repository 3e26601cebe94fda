/** User and group ids of the proxy, in the stanza, annotations and ranges. */

/** The highest id: the number above it means "no id" to the kernel. */
export const MAX_ID = 0xffff_fffe;

/** Whether a number is an id, or below 1, which means none, as in linkerd's plugin. */
export function isIdOrNone(number: number): boolean {
  return Number.isInteger(number) && number <= MAX_ID;
}

/** The id of a number, if any. The proxy never runs as root. */
export function idOf(number: number): number | undefined {
  return number >= 1 ? number : undefined;
}
