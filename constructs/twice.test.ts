import { App, Chart, Testing } from "cdk8s";
import { HelmChart } from "../helm/index";
import { LinkerdCni, LinkerdMultus } from ".";

const chartOf = (id: string) => new Chart(new App(), id, { namespace: "mesh" });

describe("two installations in one chart", () => {
  test("with the same names are a problem that names both and the first resource", () => {
    const chart = chartOf("platform");
    new LinkerdCni(chart, "first");
    new LinkerdCni(chart, "second");
    expect(() => Testing.synth(chart)).toThrow(
      "[platform/second] ServiceAccount linkerd-cni in namespace mesh is also made by platform/first: remove one of " +
        "them, or put it into another chart if it is for another cluster",
    );
  });

  test("in two namespaces both make the same cluster-scoped resources", () => {
    const chart = new HelmChart(new App(), "platform");
    new LinkerdCni(chart, "first", { namespace: "a" });
    new LinkerdCni(chart, "second", { namespace: "b" });
    expect(() => Testing.synth(chart)).toThrow(/\[platform\/second] \S+ \S+ is also made by platform\/first/);
  });

  test("of different kinds, or in two charts, are not a problem", () => {
    const app = new App();
    const chart = new Chart(app, "first", { namespace: "mesh" });
    new LinkerdCni(chart, "cni");
    new LinkerdMultus(chart, "multus");
    new LinkerdCni(new Chart(app, "second", { namespace: "mesh" }), "cni");
    expect(() => app.synthYaml()).not.toThrow();
  });
});
