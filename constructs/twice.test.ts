import { App, Chart, Testing } from "cdk8s";
import { HelmChart } from "../helm/index";
import { LinkerdCni, LinkerdMultus } from ".";

const BOTH = "both have the ClusterRole linkerd-cni: a cluster can have one of them; use an App for each cluster";

test("two installations in one chart are a problem that names both", () => {
  const chart = new Chart(new App(), "platform", { namespace: "mesh" });
  new LinkerdCni(chart, "first");
  new LinkerdCni(chart, "second");
  const named = "[platform/second] platform/first in namespace mesh and platform/second in namespace mesh";
  expect(() => Testing.synth(chart)).toThrow(`${named} ${BOTH}`);
});

test("two installations in one Helm chart are a problem", () => {
  const chart = new HelmChart(new App(), "platform");
  new LinkerdCni(chart, "first");
  new LinkerdCni(chart, "second");
  expect(() => Testing.synth(chart)).toThrow(`[platform/second] platform/first and platform/second ${BOTH}`);
});

test("installations in two namespaces of one app are a problem", () => {
  const app = new App();
  const made = (namespace: string) => new LinkerdCni(new Chart(app, namespace, { namespace }), "cni");
  made("one");
  expect(() => app.synthYaml()).not.toThrow();
  made("two");
  expect(() => app.synthYaml()).toThrow(`one/cni in namespace one and two/cni in namespace two ${BOTH}`);
});

test("installations of different kinds, or in one namespace of two charts, are not a problem", () => {
  const app = new App();
  const chart = new Chart(app, "first", { namespace: "mesh" });
  new LinkerdCni(chart, "cni");
  new LinkerdMultus(chart, "multus");
  new LinkerdCni(new Chart(app, "second", { namespace: "mesh" }), "cni");
  expect(() => app.synthYaml()).not.toThrow();
});
