import { App } from "cdk8s";
import { parse } from "yaml";
import { z } from "zod";
import { chartFiles, HelmChart, HelmObject, type Refs, type Schema, value, valueRefs, valuesOf } from "./index";

const values = valuesOf({
  replicas: value.integer({ description: "How many pods", default: 2, min: 1, max: 9 }),
  level: value.choice(["info", "debug"], { description: "Log level", default: "info" }),
  host: value.string({ description: "Name of the host", pattern: /^[a-z.]+$/, wrong: "is not a name" }),
  tag: value.string({ description: "Tag of the image", default: "1", orNumber: true, examples: ["2"] }),
  labels: value.map({ description: "Labels of the pods", default: {} }),
  affinity: value.object({ description: "Affinity of the pods" }),
  tolerations: value.list({ description: "Tolerations of the pods" }),
  zones: value.list<string>({ description: "Zones", default: ["a"] }),
  metrics: { enabled: value.boolean({ description: "Serve metrics", default: false }) },
});

const metadata = { name: "web", version: "1.0.0", appVersion: "1", description: "Web", kubeVersion: ">=1.25.0-0" };

function filesOf(schema: Schema<object>) {
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
  const refs: Refs<{
    readonly replicas: number;
    readonly level: "info" | "debug";
    readonly host: string | undefined;
    readonly labels: Readonly<Record<string, string>>;
    readonly affinity: Readonly<Record<string, unknown>> | undefined;
    readonly zones: readonly string[];
    readonly metrics: { readonly enabled: boolean };
  }> = valueRefs(values);
  expect(refs.metrics.enabled).toMatchObject({ $helm: { kind: "bool" } });
  // @ts-expect-error a number is not a text
  const wrong: Refs<{ readonly replicas: string }> = valueRefs(values);
  expect(wrong).toBeDefined();
});

test("a zod object is also a schema", () => {
  const port = z.int().min(1).default(80).meta({ description: "Port" });
  const refs: Refs<{ readonly port: number }> = valueRefs(z.strictObject({ port }));
  expect(refs.port).toMatchObject({ $helm: { kind: "int" } });
  expect(filesOf(z.strictObject({ port })).get("values.yaml")).toContain("port: 80");
});
