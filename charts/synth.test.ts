import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { multusValues } from "../constructs/multus/values";
import { values } from "../constructs/values";
import { readValues } from "../helm/read";
import { synthesized } from "./synth";

const dist = join(__dirname, "..", "dist");

function filesUnder(folder: string): readonly string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

const made = synthesized();
const folders = [...made];

test.each(folders)("dist/%s is what synthesis makes: run `npm run build -- charts`", (folder, files) => {
  const present = Object.fromEntries(filesUnder(join(dist, folder)).map((path) => [path, readFileSync(path, "utf8")]));
  const made = Object.fromEntries([...files].map(([name, content]) => [join(dist, folder, name), content]));
  expect(present).toEqual(made);
});

const schemas = { "linkerd2-cni": values, "linkerd-multus": multusValues };
type Name = keyof typeof schemas;
const file = (chart: Name, name: string): string => made.get(join("charts", chart))?.get(name) ?? "";

test.each(Object.keys(schemas) as Name[])("%s: values.yaml holds the defaults, each with a comment", (chart) => {
  const text = file(chart, "values.yaml");
  expect(readValues(schemas[chart], parse(text) as object)).toEqual(readValues(schemas[chart], {}));
  const lines = text.split("\n");
  const bare = lines.filter(
    // Text after a dash belongs to the default above it.
    (line, index) => /^ *#? ?\w[\w-]*: ?\S/.test(line) && !/^ *[#-]/.test(lines[index - 1] ?? ""),
  );
  expect(bare).toEqual([]);
});

interface Schema {
  description?: string;
  type?: string | string[];
  properties?: Record<string, Schema>;
  additionalProperties?: unknown;
  items?: Schema;
}

/** Properties of a schema without a description. */
function undescribed(schema: Schema, path: string): readonly string[] {
  const inner = Object.entries(schema.properties ?? {}).flatMap(([key, item]) => [
    ...(item.description ? [] : [`${path}.${key}`]),
    ...undescribed(item, `${path}.${key}`),
  ]);
  return [...inner, ...(schema.items === undefined ? [] : undescribed(schema.items, `${path}[]`))];
}

test.each(Object.keys(schemas) as Name[])("%s: each property of values.schema.json has a description", (chart) => {
  const schema = JSON.parse(file(chart, "values.schema.json")) as Schema;
  expect(Object.keys(schema.properties ?? {})).toContain("extraObjects");
  expect(undescribed(schema, "")).toEqual([]);
});

/** Objects of a schema that accept any key. */
function open(schema: Schema, path: string): readonly string[] {
  const inner = Object.entries(schema.properties ?? {}).flatMap(([key, item]) => open(item, `${path}.${key}`));
  const items = schema.items === undefined ? [] : open(schema.items, `${path}[]`);
  const isOpen = [schema.type].flat().includes("object") && schema.additionalProperties !== false;
  return [...(isOpen ? [path] : []), ...inner, ...items];
}

/**
 * The API server checks containers, affinities and selectors; labels and annotations may have any name; charts share
 * values at the root.
 */
const opened: Readonly<Record<Name, readonly string[]>> = {
  "linkerd2-cni": [
    "",
    ".networkPolicy.from[].namespaceSelector",
    ".networkPolicy.from[].podSelector",
    ".podMonitor.labels",
    ".prometheusRule.labels",
    ".grafanaDashboard.labels",
    ".nodeSelector",
    ".affinity",
    ".extraInitContainers[]",
    ".extraVolumes[]",
    ".extraEnv[].valueFrom",
    ".extraObjects[]",
    ".extraObjects[].metadata",
    ".podAnnotations",
    ".podLabels",
    ".commonLabels",
    ".commonAnnotations",
  ],
  "linkerd-multus": [
    "",
    ".webhook.namespaceSelector.matchLabels",
    ".webhook.objectSelector.matchLabels",
    ".nodeSelector",
    ".affinity",
    ".topologySpreadConstraints[]",
    ".networkPolicy.from[].namespaceSelector",
    ".networkPolicy.from[].podSelector",
    ".podMonitor.labels",
    ".prometheusRule.labels",
    ".extraEnv[].valueFrom",
    ".extraObjects[]",
    ".extraObjects[].metadata",
    ".podAnnotations",
    ".podLabels",
    ".commonLabels",
    ".commonAnnotations",
  ],
};

test.each(Object.keys(schemas) as Name[])("%s: values.schema.json is closed wherever the keys are ours", (chart) => {
  expect(open(JSON.parse(file(chart, "values.schema.json")), "")).toEqual(opened[chart]);
});
