import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { byName, chart, documents, helmSuite, type Rendered, run, template } from "./helm";

const podTemplate = (manifests: readonly Rendered[]) =>
  (manifests.find(({ kind }) => kind === "DaemonSet") as unknown as { spec: { template: object } }).spec.template;

/** Renders a copy of the chart in which Chart.yaml has been changed. */
function withChartYaml(change: (text: string) => string): readonly Rendered[] {
  const folder = mkdtempSync(join(tmpdir(), "chart-"));
  try {
    cpSync(chart, folder, { recursive: true });
    const path = join(folder, "Chart.yaml");
    writeFileSync(path, change(readFileSync(path, "utf8")));
    return documents(run("template", "linkerd-cni", folder, "--namespace", "linkerd-cni"));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

helmSuite("installing and upgrading with the real helm", () => {
  test("pods are not replaced when only the chart's version changes", () => {
    const bumped = withChartYaml((text) => text.replace(/^version: .*$/m, "version: 9.9.9"));
    expect(byName(bumped)).toEqual(byName(template()));
  });

  test("pods are replaced when the ConfigMap changes", () => {
    const before = podTemplate(template());
    expect(podTemplate(template("--set", "proxyUID=2103"))).not.toEqual(before);
    expect(podTemplate(template("--set", "revisionHistoryLimit=3"))).toEqual(before);
  });

  const versions = ["1.25.0", "1.31.1-eks-7f9249a", "1.30.5-gke.1014001", "v1.33.0+k3s1"];

  test.each(versions)("Kubernetes %s is new enough", (version) => {
    expect(byName(template("--kube-version", version))).toEqual(byName(template()));
  });

  test("an older Kubernetes is refused", () => {
    expect(() => template("--kube-version", "1.24.17")).toThrow("requires kubeVersion: >=1.25.0-0");
  });

  const passed: readonly (readonly [string, string, (pod: string) => void])[] = [
    ["--set-json", 'tolerations=[{"key":"a","operator":"Exists"}]', (text) => expect(text).toContain('"key":"a"')],
    ["--set-literal", "podAnnotations.note=a,b={c}", (text) => expect(text).toContain('"note":"a,b={c}"')],
    [
      "--set-file",
      `podAnnotations.chart=${join(chart, "Chart.yaml")}`,
      (text) => expect(text).toContain("apiVersion: v2"),
    ],
  ];

  test.each(passed)("values arrive by %s", (flag, assignment, check) => {
    check(JSON.stringify(podTemplate(template(flag, assignment))));
  });
});
