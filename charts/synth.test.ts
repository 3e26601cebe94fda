import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { values } from "../constructs";
import { propsSource } from "./props-source";
import { synthesized } from "./synth";

const dist = join(__dirname, "..", "dist");

function filesUnder(folder: string): readonly string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
}

const [...folders] = synthesized();

test.each(folders)("dist/%s is what synthesis makes: run `npm run build -- charts`", (folder, files) => {
  const present = Object.fromEntries(filesUnder(join(dist, folder)).map((path) => [path, readFileSync(path, "utf8")]));
  const made = Object.fromEntries([...files].map(([name, content]) => [join(dist, folder, name), content]));
  expect(present).toEqual(made);
});

test("constructs/props.ts is what synthesis makes: run `npm run build -- charts`", () => {
  expect(readFileSync(join(dist, "..", "constructs", "props.ts"), "utf8")).toBe(propsSource());
});

test("two runs are byte-identical", () => {
  expect([...synthesized()]).toEqual(folders);
});

const chart = (name: string): string => synthesized().get(join("charts", "linkerd2-cni"))?.get(name) ?? "";

test("values.yaml holds the defaults, each with a comment", () => {
  const text = chart("values.yaml");
  expect(values.parse(parse(text))).toEqual(values.parse({}));
  const lines = text.split("\n");
  const bare = lines.filter(
    (line, index) => /^ *#? ?\w[\w-]*: ?\S/.test(line) && !lines[index - 1]?.trim().startsWith("#"),
  );
  expect(bare).toEqual([]);
});

interface Schema {
  type?: string | string[];
  properties?: Record<string, Schema>;
  additionalProperties?: unknown;
  items?: Schema;
}

/** Objects of a schema that take any key. */
function open(schema: Schema, path: string): readonly string[] {
  const inner = Object.entries(schema.properties ?? {}).flatMap(([key, item]) => open(item, `${path}.${key}`));
  const items = schema.items === undefined ? [] : open(schema.items, `${path}[]`);
  const isOpen = [schema.type].flat().includes("object") && schema.additionalProperties !== false;
  return [...(isOpen ? [path] : []), ...inner, ...items];
}

test("values.schema.json is closed wherever the keys are ours", () => {
  expect(open(JSON.parse(chart("values.schema.json")), "")).toEqual([
    ".global",
    // Containers and selectors are the API server's to check; labels and annotations have any name; `global` is Helm's.
    ".networkPolicy.from[].namespaceSelector",
    ".networkPolicy.from[].podSelector",
    ".podMonitor.labels",
    ".extraInitContainers[]",
    ".podAnnotations",
    ".podLabels",
    ".commonLabels",
  ]);
});
