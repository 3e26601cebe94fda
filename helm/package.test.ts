import { readFileSync } from "node:fs";
import { join } from "node:path";
import { App, Chart, JsonPatch } from "cdk8s";
import { k8s } from "cdk8s-plus-27";
import { chartFiles, concat, HelmChart, HelmObject, release, text, value, valueRefs, valuesOf, when } from "./index";

const values = valuesOf({
  replicas: value.integer({ description: "How many pods", default: 2, min: 0, max: 9 }),
  debug: value.boolean({ description: "Log more", default: false }),
  ports: value.numericString({ description: "Ports", default: "" }),
});

const metadata = { name: "web", version: "1.0.0", appVersion: "1", description: "Web", kubeVersion: ">=1.25.0-0" };

function files(build: (chart: HelmChart) => void): ReadonlyMap<string, string> {
  const chart = new HelmChart(new App(), "web");
  build(chart);
  return chartFiles({ chart, metadata, values, introduction: "Web." });
}

const config = (chart: HelmChart, id: string, name: string, data: Record<string, never>) =>
  new HelmObject<k8s.KubeConfigMapProps>(chart, id, k8s.KubeConfigMap.GVK, { metadata: { name }, data });

test("a file for each resource, named by its kind, and by its name if several have that kind", () => {
  const one = files((chart) => config(chart, "a", "first", {}));
  expect([...one.keys()]).toEqual([
    "Chart.yaml",
    "values.yaml",
    "values.schema.json",
    "README.md",
    "templates/NOTES.txt",
    "templates/configmap.yaml",
  ]);
  const two = files((chart) => {
    config(chart, "a", "first", {});
    config(chart, "b", "second", {});
  });
  expect([...two.keys()].slice(5)).toEqual(["templates/configmap-first.yaml", "templates/configmap-second.yaml"]);
  const same = (chart: HelmChart) => {
    config(chart, "a", "first", {});
    config(chart, "b", "first", {});
  };
  expect(() => files(same)).toThrow("templates/configmap-first.yaml");
});

test("values of a chart are where its schema puts them", () => {
  const { debug } = valueRefs(values, ["Values", "web"]);
  const made = files((chart) => {
    const data = { debug: text(debug) };
    new HelmObject<k8s.KubeConfigMapProps>(chart, "map", k8s.KubeConfigMap.GVK, { metadata: { name: "map" }, data });
  });
  expect(made.get("templates/configmap.yaml")).toContain('eq (toString (.Values.web).debug) "true"');
});

test("generated classes and patches carry expressions for scalars", () => {
  const made = files((chart) => {
    const spec = { selector: {}, template: {}, replicas: valueRefs(values).replicas as number };
    const deployment = new k8s.KubeDeployment(chart, "web", { metadata: { name: "web" }, spec });
    deployment.addJsonPatch(JsonPatch.add("/metadata/namespace", release.namespace));
  });
  const template = made.get("templates/deployment.yaml");
  const orDefault = 'kindIs "invalid" | ternary 2 .Values.replicas';
  expect(template).toContain(`  replicas: {{ .Values.replicas | ${orDefault} | int }}\n`);
  expect(template).toContain("  namespace: {{ .Release.Namespace | quote }}\n");
});

test("an expression in a chart that is not a Helm chart is an error", () => {
  const chart = new Chart(new App(), "plain");
  const metadata = { name: "map", namespace: release.namespace };
  new HelmObject<k8s.KubeConfigMapProps>(chart, "map", k8s.KubeConfigMap.GVK, { metadata });
  expect(() => chart.toJson()).toThrow("plain/map (ConfigMap) has expressions");
});

test("a wrong use does not compile", () => {
  const { replicas, debug, ports } = valueRefs(values);
  files((chart) => {
    new HelmObject<k8s.KubeDeploymentProps>(chart, "web", k8s.KubeDeployment.GVK, {
      metadata: { name: concat("web-", ports) },
      spec: {
        // @ts-expect-error a boolean is not a number
        replicas: debug,
        // @ts-expect-error a text is not a number
        minReadySeconds: when(debug, ports, 1),
        paused: debug,
        revisionHistoryLimit: when(debug, replicas, 1),
        selector: {},
        template: { spec: { hostPID: debug, containers: [] } },
      },
    });
    new HelmObject<k8s.KubePodProps>(chart, "pod", k8s.KubePod.GVK, {
      metadata: { name: "pod" },
      // @ts-expect-error the API calls it hostPID
      spec: { hostPid: debug, containers: [] },
    });
  });
});

test("field names are the API's", () => {
  const source = readFileSync(require.resolve("cdk8s-plus-27/lib/imports/k8s.js"), "utf8");
  const fields = [...source.matchAll(/^ +'([\w$-]+)': .*?obj\.(\w+)/gm)].map(([, api, own]) => [own, api]);
  const names = readFileSync(join(__dirname, "templated.ts"), "utf8");
  const missing = fields.filter(([own, api]) => own !== api && !names.includes(`readonly ${own}: "${api}"`));
  expect(missing).toEqual([]);
});
