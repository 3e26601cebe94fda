const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** How each byte outside of strings changes the depth. */
const STEPS = new Int8Array(256);
for (const open of Buffer.from("[{")) STEPS[open] = 1;
for (const close of Buffer.from("]}")) STEPS[close] = -1;

/** Where a string ends that begins there. */
function endOfString(text: Buffer, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== QUOTE) at += text[at] === BACKSLASH ? 2 : 1;
  return at;
}

/** Whether a JSON text in UTF-8 nests deeper than so many arrays and objects; nothing is made of it. */
export function isDeeperThan(text: Buffer, most: number): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const byte = text[at] ?? 0;
    if (byte === QUOTE) at = endOfString(text, at);
    depth += STEPS[byte] ?? 0;
    if (depth > most) return true;
  }
  return false;
}
