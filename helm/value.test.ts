import { App } from "cdk8s";
import { parse } from "yaml";
import {
  chartFiles,
  HelmChart,
  HelmObject,
  type Input,
  type PropsOf,
  ref,
  type ValueMembers,
  value,
  valueRefs,
  valuesOf,
} from "./index";
import { readValues } from "./read";

const values = valuesOf({
  replicas: value.integer({ description: "How many pods", default: 2, min: 1, max: 9 }),
  level: value.choice(["info", "debug"], { description: "Log level", default: "info" }),
  host: value.string({ description: "Name of the host", pattern: /^[a-z.]+$/, wrong: "is not a name" }),
  tag: value.numericString({ description: "Tag of the image", default: "1", examples: ["2"] }),
  labels: value.map({ description: "Labels of the pods", default: {} }),
  affinity: value.object({ description: "Affinity of the pods" }),
  tolerations: value.list({ description: "Tolerations of the pods", default: [] }),
  zones: value.texts({ description: "Zones", default: ["a"] }),
  metrics: { enabled: value.boolean({ description: "Serve metrics", default: false }) },
});

const metadata = { name: "web", version: "1.0.0", appVersion: "1", description: "Web", kubeVersion: ">=1.25.0-0" };

function filesOf(schema: ValueMembers) {
  const chart = new HelmChart(new App(), "web");
  const data = valueRefs(schema);
  new HelmObject<{ data: object }>(chart, "map", { apiVersion: "v1", kind: "ConfigMap" }, {
    metadata: { name: "map" },
    data,
  } as never);
  return chartFiles({ chart, metadata, values: schema, introduction: "" });
}

test("the values of a chart in its files", () => {
  const files = filesOf(values);
  expect(parse(files.get("values.yaml") ?? "")).toEqual({
    replicas: 2,
    level: "info",
    tag: "1",
    labels: {},
    tolerations: [],
    zones: ["a"],
    metrics: { enabled: false },
  });
  expect(JSON.parse(files.get("values.schema.json") ?? "")).toMatchObject({
    additionalProperties: true,
    properties: {
      replicas: { type: ["integer", "string"], minimum: 1, maximum: 9 },
      level: { enum: ["info", "debug"] },
      host: { type: ["string", "null"], pattern: "^[a-z.]+$" },
      tag: { type: ["string", "number"], examples: ["2"] },
      metrics: { additionalProperties: false, properties: { enabled: { type: ["boolean", "string"] } } },
    },
  });
});

test("references have the types of the values", () => {
  const refs = valueRefs(values);
  const enabled: Input<boolean> = refs.metrics.enabled;
  const host: Input<string> | undefined = refs.host;
  const zones: Input<readonly string[]> = refs.zones;
  const level: Input<"info" | "debug"> = refs.level;
  expect([enabled, host, zones, level]).toMatchObject(
    ["bool", "string", "list", "string"].map((kind) => ({ $helm: { kind } })),
  );
  // @ts-expect-error a number is not a text
  const wrong: Input<string> = refs.replicas;
  expect(wrong).toBeDefined();
});

test("props may be left out, and have the types of the values", () => {
  const props: PropsOf<typeof values> = { tag: 2, metrics: { enabled: true }, level: ref("string", "Values", "other") };
  expect(props.affinity).toBeUndefined();
  // @ts-expect-error no value of the chart
  const unknown: PropsOf<typeof values> = { metrics: { enable: true } };
  // @ts-expect-error not a level
  const loud: PropsOf<typeof values> = { level: "loud" };
  expect([unknown, loud]).toBeDefined();
});

/** Members of lists and objects. */
const listed = valuesOf({
  peers: value.list({
    description: "Peers",
    default: [],
    members: {
      name: value.string({ description: "Name", notEmpty: true, required: true }),
      weight: value.integer({ description: "Weight", min: 1, max: 9, isStrict: true }),
    },
  }),
});

test("the members of a list's items are checked, and null removes one", () => {
  const { problems } = readValues(listed, { peers: [{ weight: "1" }, { name: "", color: 1 }, 3] });
  expect(problems).toEqual([
    "peers.0.name: is missing and is not of type string",
    'peers.0.weight: "1" is not of type number',
    "peers.1.color is not a value",
    'peers.1.name: "" is empty',
    "peers.2: 3 is not of type object",
  ]);
  const { peers } = readValues(listed, { peers: [{ name: "a", weight: null }] }).values;
  const typed: readonly { readonly name: string; readonly weight?: number | undefined }[] = peers;
  expect(typed).toEqual([{ name: "a" }]);
});
