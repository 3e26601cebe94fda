import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { stringify } from "yaml";
import { version } from "../constructs";
import { values } from "../constructs/values";
import { repository } from "../constructs/version";
import type { ChartMetadata } from "../helm/index";
import { readValues } from "../helm/read";

const root = join(__dirname, "..");
const MAIN = `${repository}/blob/main`;

/** The address of a page in docs. */
export const docs = (page: string): string => `${MAIN}/docs/${page}`;

/** The newest version in CHANGELOG.md. */
interface Release {
  readonly version: string;
  /** One or more sentences each. */
  readonly changes: readonly string[];
}

/** The newest release in the text of CHANGELOG.md. @throws an Error if it has none */
export function newestRelease(changelog: string): Release {
  const [, section] = changelog.split(/^## /m);
  const [heading = "", ...lines] = (section ?? "").split("\n");
  if (heading === "") throw new Error("CHANGELOG.md: no heading `## VERSION`");
  const changes = lines.filter((line) => line.startsWith("- ")).map((line) => line.slice(2));
  return { version: heading.trim(), changes };
}

const { image } = readValues(values, {}).values;

/** The fields of Chart.yaml that differ between charts. */
interface ChartDescription {
  readonly name: string;
  readonly description: string;
  readonly keywords: readonly string[];
  /** Whether a line of CHANGELOG.md concerns this chart. */
  readonly concerns: (change: string) => boolean;
  /** Its page in docs. */
  readonly manual: string;
}

/** The content of Chart.yaml, with the annotations that Artifact Hub reads. */
export function chartMetadata({ name, description, keywords, concerns, manual }: ChartDescription): ChartMetadata {
  const read = (file: string): string => readFileSync(join(root, file), "utf8");
  const { license } = JSON.parse(read("package.json")) as { license: string };
  const links = [
    { name: "Documentation", url: docs(manual) },
    { name: "Changelog", url: `${MAIN}/CHANGELOG.md` },
    { name: "Support", url: `${repository}/issues` },
  ];
  const images = [
    {
      name: "linkerd-cni",
      image: `${image.name}:${image.version}`,
      platforms: ["linux/amd64", "linux/arm64"],
    },
  ];
  const yaml = (value: unknown): string => stringify(value, { lineWidth: 0 });
  return {
    name,
    version,
    appVersion: version,
    description,
    // Older versions get no fixes from anyone. `-0` accepts versions with suffixes, which managed platforms have.
    kubeVersion: ">=1.25.0-0",
    home: repository,
    icon: `${repository}/raw/main/docs/icon.svg`,
    sources: [repository],
    maintainers: [{ name: "linkerd-cni-cdk8s", url: dirname(repository) }],
    keywords,
    annotations: {
      "artifacthub.io/category": "networking",
      "artifacthub.io/changes": yaml(newestRelease(read("CHANGELOG.md")).changes.filter(concerns)),
      "artifacthub.io/images": yaml(images),
      "artifacthub.io/license": license,
      "artifacthub.io/links": yaml(links),
    },
  };
}

/** Whether a line of CHANGELOG.md concerns the chart linkerd-multus; all others concern linkerd2-cni. */
export const concernsMultus = (change: string): boolean => change.startsWith("Multus operator:");
