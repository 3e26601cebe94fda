import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { values } from "../constructs";
import { valuesTable } from "../constructs/helm/documents";
import { type PluginResults, pluginTable } from "./bench-table";
import { root } from "./paths";
import { RESULTS } from "./results";

const path = join(root, "README.md");

/** A README with what is made between the marks of that name. @throws where a mark is missing */
export function withSection(readme: string, name: string, made: string): string {
  const [first, last] = [`<!-- ${name}:begin -->`, `<!-- ${name}:end -->`];
  const [begin, end] = [readme.indexOf(first), readme.indexOf(last)];
  if (begin < 0 || end < begin) throw new Error(`README.md needs ${first} and after it ${last}`);
  return `${readme.slice(0, begin + first.length)}\n${made}\n${readme.slice(end)}`;
}

/** A README with the table of the chart's values, and that of the last benchmark. */
export async function currentReadme(readme: string): Promise<string> {
  const { plugin } = JSON.parse(await readFile(RESULTS, "utf8")) as { plugin: PluginResults };
  return withSection(withSection(readme, "values", valuesTable(values)), "bench", pluginTable(plugin));
}

/** Brings the project's README up to date. */
export async function updateReadme(): Promise<void> {
  await writeFile(`${path}.new`, await currentReadme(await readFile(path, "utf8")));
  await rename(`${path}.new`, path);
}
