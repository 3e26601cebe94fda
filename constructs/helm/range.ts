/** A regular expression for the decimal texts of all whole numbers from `low` to `high`, without leading zeros. */
export function rangePattern(low: number, high: number): string {
  const negative = low < 0 ? naturals(Math.max(1, -high), -low).map((part) => `-${part}`) : [];
  const natural = high >= 0 ? naturals(Math.max(0, low), high) : [];
  return `(${[...negative, ...natural].join("|")})`;
}

/** One alternative for each block of numbers that share their leading digits. */
function naturals(low: number, high: number): string[] {
  const parts: string[] = [];
  for (let from = low; from <= high; ) {
    const to = blockEnd(from, high);
    parts.push(block(String(from), String(to)));
    from = to + 1;
  }
  return parts;
}

/** The end of the largest block from a number on in which every digit runs freely from its own to another. */
function blockEnd(from: number, high: number): number {
  let end = from;
  for (let unit = 10; from % (unit / 10) === 0; unit *= 10) {
    const digit = Math.floor(from / (unit / 10)) % 10;
    const reach = Math.min(9, Math.floor((high - from + 1) / (unit / 10)) - 1 + digit);
    if (reach < digit) break;
    end = from + (reach - digit + 1) * (unit / 10) - 1;
    if (digit !== 0 || reach !== 9 || from === 0) break;
  }
  return end;
}

function block(from: string, to: string): string {
  const digits = [...from].map((low, index) => {
    const top = to.charAt(index);
    return low === top ? low : `[${low}-${top}]`;
  });
  return digits.join("");
}
