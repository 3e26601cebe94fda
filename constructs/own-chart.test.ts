import { App } from "cdk8s";
import { parse } from "yaml";
import { chartFiles, HelmChart, HelmObject, type ValueMembers, value, valueRefs, valuesOf } from "../helm/index";
import { LinkerdCni, type LinkerdCniProps, values } from ".";

const metadata = { name: "mesh", version: "1.0.0", appVersion: "1", description: "Mesh", kubeVersion: ">=1.25.0-0" };

/** Props that a platform team fixes for all its clusters. */
class PlatformCni extends LinkerdCni {
  constructor(chart: HelmChart, props: LinkerdCniProps = {}) {
    super(chart, "cni", { logLevel: "debug", nri: { enabled: false }, image: { name: "registry/cni" }, ...props });
  }
}

function files(chart: HelmChart, schema: ValueMembers = values, notes = "") {
  const made = chartFiles({ chart, metadata, values: schema, introduction: "", notes });
  const { properties } = JSON.parse(made.get("values.schema.json") ?? "") as { properties: Record<string, object> };
  return { values: parse(made.get("values.yaml") ?? "") as Record<string, object>, properties, made };
}

describe("an own Helm chart with fixed props", () => {
  test("has neither the replaced values nor those that only disabled resources read", () => {
    const chart = new HelmChart(new App(), "mesh");
    new PlatformCni(chart);
    const { values, properties, made } = files(chart);
    for (const name of ["logLevel", "nri"]) {
      expect(values).not.toHaveProperty(name);
      expect(properties).not.toHaveProperty(name);
    }
    expect(Object.keys(values["image"] ?? {})).toEqual(["version", "digest", "pullPolicy"]);
    expect(properties["image"]).not.toHaveProperty("properties.name");
    expect(made.get("README.md")).not.toMatch(/\| (logLevel|image\.name|nri\.)/);
    expect(values).toMatchObject({ proxyUID: 2102, updateStrategy: { type: "RollingUpdate" } });
  });

  test("keeps values that other resources or the notes read, and those of others", () => {
    const chart = new HelmChart(new App(), "mesh");
    new PlatformCni(chart, { valuesPath: ["Values", "cni"], proxyUID: 3000 });
    const schema = valuesOf({
      cni: values,
      subchart: { replicas: value.integer({ description: "Of a subchart", default: 1, min: 0, max: 9 }) },
    });
    const data = { level: valueRefs(values, ["Values", "cni"]).logLevel };
    const map = { metadata: { name: "map" }, data };
    new HelmObject<{ data: object }>(chart, "map", { apiVersion: "v1", kind: "ConfigMap" }, map);
    const made = files(chart, schema, "The socket is in {{ .Values.cni.nri.socketDir }}.").values;
    expect(made).toMatchObject({ cni: { logLevel: "info" }, subchart: { replicas: 1 } });
    expect(made["cni"]).toHaveProperty("nri", { socketDir: "/var/run/nri" });
    expect(made["cni"]).not.toHaveProperty("proxyUID");
  });
});
