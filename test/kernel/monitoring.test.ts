import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { App, Chart } from "cdk8s";
import { parse } from "yaml";
import { root } from "../../build/paths";
import { LinkerdCni, LinkerdMultus } from "../../constructs";
import { RealApi, realApiMissing } from "../support/real-api";
import { suite } from "../support/requirements";
import { until } from "../support/until";

const definitions = join(root, ".cache", "prometheus-operator");
const lacks = existsSync(definitions)
  ? realApiMissing()
  : "the Prometheus Operator's definitions: .ci/run fetches them";

interface Made {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string };
  readonly spec?: object;
}

const NAMESPACE = "linkerd-cni";
const operated = `/apis/monitoring.coreos.com/v1/namespaces/${NAMESPACE}`;
const collections: Readonly<Record<string, string>> = {
  PodMonitor: `${operated}/podmonitors`,
  PrometheusRule: `${operated}/prometheusrules`,
  ConfigMap: `/api/v1/namespaces/${NAMESPACE}/configmaps`,
};

suite("monitoring with a real API server and the Prometheus Operator's own kinds", lacks, () => {
  let api: RealApi;

  beforeAll(async () => {
    api = await RealApi.start("nobody");
    const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for (const name of readdirSync(definitions)) {
      await api.json({ method: "POST", path, body: parse(readFileSync(join(definitions, name), "utf8")) });
    }
    await api.json({ method: "POST", path: "/api/v1/namespaces", body: { metadata: { name: NAMESPACE } } });
    for (const path of Object.values(collections)) {
      await until(path, async () => (await api.request({ path })).status === 200);
    }
  });

  afterAll(() => api.close());

  test("every field is known, and nothing is filled in that a GitOps controller would see as a difference", async () => {
    const chart = new Chart(new App(), "chart");
    const enabled = { enabled: true };
    new LinkerdCni(chart, "cni", {
      podMonitor: enabled,
      prometheusRule: enabled,
      grafanaDashboard: enabled,
      repairController: enabled,
      nri: enabled,
    });
    new LinkerdMultus(chart, "multus", { podMonitor: enabled, prometheusRule: enabled, namespace: NAMESPACE });
    const made = (chart.toJson() as Made[]).filter(({ kind }) => kind in collections);
    expect(made.map(({ kind }) => kind).sort()).toEqual([
      ...["ConfigMap", "ConfigMap"],
      ...["PodMonitor", "PodMonitor", "PodMonitor", "PrometheusRule", "PrometheusRule"],
    ]);
    for (const body of made) {
      const path = `${collections[body.kind]}?fieldValidation=Strict`;
      expect(await api.json({ method: "POST", path, body })).toMatchObject({ kind: body.kind });
      const kept = await api.json<Made>({ path: `${collections[body.kind]}/${body.metadata.name}` });
      expect(kept.spec).toEqual(body.spec);
    }
  });
});
