import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { App } from "cdk8s";
import fc from "fast-check";
import { writeFolder } from "../../charts/synth";
import { version } from "../../constructs";
import { chartFiles, HelmChart } from "../../helm/index";
import { arbitraryValues } from "./arbitrary";
import { constructed, type OwnChart, ownCharts } from "./charts";
import { byName, documents, helmSuite, run } from "./helm";

/** Each is a chart of its own, and a run of helm. */
const RUNS = 40;

/** Helm's manifests of a chart with fixed values. */
async function fixed(chart: OwnChart, set: object, namespace: string) {
  const scope = new HelmChart(new App(), "own");
  chart.make(scope, set, namespace);
  const metadata = { name: "own", version, appVersion: version, description: "own", kubeVersion: ">=1.25.0-0" };
  const files = chartFiles({ chart: scope, metadata, values: chart.values as never, introduction: "" });
  const folder = mkdtempSync(join(tmpdir(), "fixed-"));
  try {
    await writeFolder(folder, files);
    return byName(documents(run("template", chart.name, folder, "--namespace", namespace)));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

for (const [name, chart] of ownCharts) {
  helmSuite(`${name}: values fixed in a chart of one's own`, () => {
    test("render as they do in plain manifests", async () => {
      const same = fc.asyncProperty(arbitraryValues(chart.values), async (set) => {
        expect(await fixed(chart, set, "mesh")).toEqual(byName(constructed(chart, set, "mesh")));
      });
      await fc.assert(same, { numRuns: RUNS, endOnFailure: true });
    });
  });
}
