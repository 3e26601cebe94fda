/**
 * Comma-separated lists in annotations. Anyone who may create a pod can write one of 256 KiB, so everything here takes
 * linear time. It does not use regular expressions, for which the plugin's engine keeps a state for every character.
 */

/**
 * Maximum number of port ranges or networks in one list. Up to this number, a list stays as written, so that the rules
 * equal those of linkerd's plugin, which does not merge. A longer list is merged, and refused if it is still longer.
 */
export const MAX_ITEMS = 1000;

/** Maximum number of items read from one list for merging, which limits the cost for the node. */
export const MAX_READ = 5 * MAX_ITEMS;

/** Whether a list has more items than the maximum to read. */
export function isTooLong(text: string): boolean {
  let comma = text.indexOf(",");
  for (let count = 1; comma >= 0; count += 1) {
    if (count >= MAX_READ) return true;
    comma = text.indexOf(",", comma + 1);
  }
  return false;
}

/** ASCII white space. */
function isSpace(code: number): boolean {
  return code === 0x20 || (code >= 0x09 && code <= 0x0d);
}

/** Where a part of a text begins, after white space. */
export function startOf(text: string, from: number, to: number): number {
  let start = from;
  while (start < to && isSpace(text.charCodeAt(start))) start += 1;
  return start;
}

/** Where a part of a text ends, before white space. */
export function endOf(text: string, from: number, to: number): number {
  let end = to;
  while (end > from && isSpace(text.charCodeAt(end - 1))) end -= 1;
  return end;
}

/**
 * Calls back with the position of each item, without surrounding white space. Empty items are ignored, as in linkerd's
 * plugin: `80,,443,` is 80 and 443.
 */
export function eachItem(text: string, take: (start: number, end: number) => void): void {
  for (let from = 0; from < text.length; ) {
    const comma = text.indexOf(",", from);
    const to = comma < 0 ? text.length : comma;
    const start = startOf(text, from, to);
    if (start < to) take(start, endOf(text, start, to));
    from = to + 1;
  }
}
