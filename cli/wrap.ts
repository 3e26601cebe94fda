/** The parts of a text that may stand on lines of their own: words, and the items of a list that is longer than a line. */
function partsOf(text: string, width: number): readonly string[] {
  return text.split(/(?<= )/).flatMap((word) => (word.trimEnd().length > width ? word.split(/(?<=,)/) : word));
}

/**
 * Text in lines of at most `width` characters, broken at spaces, and a long list without spaces after its commas; a
 * longer word has a line of its own.
 * @param first width of the first line
 */
export function wrapped(text: string, width: number, first = width): readonly string[] {
  const lines: string[] = [];
  for (const part of partsOf(text, width)) {
    const last = lines.at(-1);
    const room = lines.length === 1 ? first : width;
    if (last !== undefined && (last + part).trimEnd().length <= room) lines[lines.length - 1] = last + part;
    else lines.push(part);
  }
  return lines.map((line) => line.trimEnd());
}

/**
 * Lines of an indented text.
 * @param columns of the terminal; undefined keeps the text on one line, as for a program that reads it
 */
export function indented(text: string, indent: number, columns: number | undefined): readonly string[] {
  const lines = columns === undefined ? [text] : wrapped(text, Math.max(20, columns - indent));
  return lines.map((line) => `${" ".repeat(indent)}${line}`);
}

/**
 * Indents the lines of a text after the first.
 * @param indent of those lines
 */
export function hanging(text: string, indent: number, columns: number | undefined): string {
  if (columns === undefined) return text;
  const [first = "", ...others] = wrapped(text, Math.max(20, columns - indent), Math.max(20, columns));
  return [first, ...others.map((line) => `${" ".repeat(indent)}${line}`)].join("\n");
}
