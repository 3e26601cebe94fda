import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "yaml";
import { version } from "../../constructs";
import type { OwnChart } from "./charts";
import { documents, type Rendered, run } from "./helm";

/** JSON that is YAML too, which does not take all of JSON's characters. */
function json(value: unknown): string {
  const hidden = /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g;
  return JSON.stringify(value).replace(hidden, (text) => `\\u${text.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** A chart that has another one as a subchart, once for each of some value sets. */
function write(folder: string, { name, path }: OwnChart, sets: readonly unknown[]): void {
  const aliases = sets.map((_, index) => `set${index}`);
  mkdirSync(join(folder, "charts"));
  cpSync(path, join(folder, "charts", name), { recursive: true });
  const dependencies = aliases.map((alias) => ({
    name,
    version,
    alias,
    condition: `${alias}.enabled`,
  }));
  writeFileSync(
    join(folder, "Chart.yaml"),
    stringify({ apiVersion: "v2", name: "all", version: "1.0.0", dependencies }),
  );
  const values = Object.fromEntries(sets.map((set, index) => [`set${index}`, { ...(set as object), enabled: true }]));
  writeFileSync(join(folder, "values.json"), json({ ...values, global: { any: "thing" } }));
}

/** Helm names the template that each document comes from in a line before it. */
const source = /^---\n# Source: all\/charts\/set(\d+)\/.*\n/m;

function bySet(text: string, count: number): readonly (readonly Rendered[])[] {
  const rendered: Rendered[][] = Array.from({ length: count }, () => []);
  const [, ...parts] = text.split(source);
  for (let part = 0; part < parts.length; part += 2) {
    rendered[Number(parts[part])]?.push(...documents(parts[part + 1] ?? ""));
  }
  return rendered;
}

/** Renders several value sets with the real helm in one run, with some flags. */
export function renderAll(
  chart: OwnChart,
  sets: readonly unknown[],
  namespace: string,
  ...flags: readonly string[]
): readonly (readonly Rendered[])[] {
  const folder = mkdtempSync(join(tmpdir(), "umbrella-"));
  try {
    write(folder, chart, sets);
    const values = join(folder, "values.json");
    return bySet(run("template", "all", folder, "--namespace", namespace, "--values", values, ...flags), sets.length);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
