import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { newestRelease } from "../../charts/metadata";
import { runIn } from "../../cli/io.testing";
import { multusValues } from "../../constructs/multus/values";
import { values } from "../../constructs/values";
import { repository, version } from "../../constructs/version";
import { readValues } from "../../helm/read";

const root = join(__dirname, "..", "..");
const read = (file: string): string => readFileSync(join(root, file), "utf8");
const about = JSON.parse(read("package.json")) as { readonly version: string; readonly license: string };
const changelog = newestRelease(read("CHANGELOG.md"));

interface ChartYaml {
  readonly version: string;
  readonly appVersion: string;
  readonly home: string;
  readonly icon: string;
  readonly annotations: Readonly<Record<string, string>>;
}

const chartYaml = (name: string): ChartYaml => parse(read(`dist/charts/${name}/Chart.yaml`)) as ChartYaml;
const charts = ["linkerd2-cni", "linkerd-multus"];

test("constructs, both images' tags, the CLI and the newest heading of CHANGELOG.md have package.json's version", async () => {
  const images = [readValues(values, {}), readValues(multusValues, {})].map((read) => read.values.image.version);
  const { out } = await runIn({}, ["--version"]);
  const said = [version, ...images, out.trim(), changelog.version];
  expect(said).toEqual(said.map(() => about.version));
});

test.each(charts)("%s: version, appVersion and the image named for Artifact Hub, too", (name) => {
  const { annotations, ...chart } = chartYaml(name);
  expect([chart.version, chart.appVersion]).toEqual([about.version, about.version]);
  const { image } = readValues(values, {}).values;
  expect(parse(annotations["artifacthub.io/images"] ?? "")).toMatchObject([
    { image: `${image.name}:${about.version}` },
  ]);
  expect(annotations["artifacthub.io/license"]).toBe(about.license);
});

test("every change stands in the metadata of one chart", () => {
  const lists = charts.map((name) => parse(chartYaml(name).annotations["artifacthub.io/changes"] ?? "") as string[]);
  for (const list of lists) expect(list.length).toBeGreaterThan(0);
  expect(lists.flat().sort()).toEqual([...changelog.changes].sort());
});

test.each(charts)("%s: its icon and links lead to files of the repository", (name) => {
  const { annotations, home, icon } = chartYaml(name);
  expect(home).toBe(repository);
  const links = parse(annotations["artifacthub.io/links"] ?? "") as { readonly url: string }[];
  const files = [icon, ...links.map(({ url }) => url)].flatMap((url) => url.split(/\/(?:raw|blob)\/main\//).slice(1));
  expect(files).toHaveLength(3);
  expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([]);
});

test("a changelog without a version is an error", () => {
  expect(newestRelease("# Changelog\n\n## 2.0.0\n\n- A.\n- B.\n\n## 1.0.0\n\n- C.\n")).toEqual({
    version: "2.0.0",
    changes: ["A.", "B."],
  });
  expect(() => newestRelease("# Changelog\n")).toThrow("CHANGELOG.md: no heading");
});
