/** Text in lines of at most `width` characters, broken at spaces; a longer word has a line of its own. */
export function wrapped(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/**
 * Lines of an indented text.
 * @param columns of the terminal; undefined keeps the text on one line, as for a program that reads it
 */
export function indented(text: string, indent: number, columns: number | undefined): readonly string[] {
  const lines = columns === undefined ? [text] : wrapped(text, Math.max(20, columns - indent));
  return lines.map((line) => `${" ".repeat(indent)}${line}`);
}
