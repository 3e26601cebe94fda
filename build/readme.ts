import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { values } from "../constructs";
import { valuesTable } from "../constructs/helm/documents";
import { root } from "./paths";

const BEGIN = "<!-- values:begin -->";
const END = "<!-- values:end -->";
const path = join(root, "README.md");

/** A README with the table of the chart's values between its marks. @throws where a mark is missing */
export function withValuesTable(readme: string): string {
  const [begin, end] = [readme.indexOf(BEGIN), readme.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`README.md needs ${BEGIN} and after it ${END}`);
  return `${readme.slice(0, begin + BEGIN.length)}\n${valuesTable(values)}\n${readme.slice(end)}`;
}

/** Puts the table of the chart's values into the project's README. */
export async function updateReadme(): Promise<void> {
  await writeFile(`${path}.new`, withValuesTable(await readFile(path, "utf8")));
  await rename(`${path}.new`, path);
}
