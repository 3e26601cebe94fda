import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { App, Chart } from "cdk8s";
import { LinkerdCni, LinkerdMultus } from "../../constructs";
import { createMetrics as repairMetrics } from "../../controllers/repair/metrics";
import { createInstruments as installerInstruments } from "../../installer/telemetry/instruments";
import { createMetrics as nriMetrics } from "../../nri/metrics";
import { exposedMetrics } from "../support/metrics";

/** Names of metrics; a histogram's own is followed by those of its series. */
function namesIn(text: string): readonly (readonly string[])[] {
  const types = [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)];
  return types.map(([, name = "", type]) =>
    type === "histogram" ? [name, ...["bucket", "sum", "count"].map((part) => `${name}_${part}`)] : [name],
  );
}

const REPAIR_PREFIX = "linkerd_cni_repair_controller_";

const labelsIn = (text: string): readonly string[] => [...text.matchAll(/(\w+)="/g)].map(([, label = ""]) => label);

/** The rules, and the dashboard, as text. */
function rendered(): Readonly<Record<"rules" | "dashboard", string>> {
  const chart = new Chart(new App(), "chart");
  const enabled = { enabled: true };
  new LinkerdCni(chart, "cni", {
    ...{ prometheusRule: enabled, grafanaDashboard: enabled },
    ...{ repairController: enabled, nri: enabled },
  });
  const objects = chart.toJson() as { kind: string; metadata: { name: string } }[];
  const text = (found: string) =>
    JSON.stringify(objects.find(({ kind, metadata }) => `${kind}/${metadata.name}` === found));
  return { rules: text("PrometheusRule/linkerd-cni"), dashboard: text("ConfigMap/linkerd-cni-dashboard") };
}

const { rules, dashboard } = rendered();
/** Names of metrics that are asked for; the name of a thing of the chart has dashes. */
const asked = (text: string): readonly string[] => [...new Set(text.match(/\blinkerd_cni_\w+/g))].sort();

test.each([
  ["rules", rules],
  ["dashboard", dashboard],
])("%s: only metrics that the processes have are asked for", async (_, text) => {
  const known = namesIn(await exposedMetrics()).flatMap((names) => (names.length === 1 ? names : names.slice(1)));
  expect(asked(text).length).toBeGreaterThan(5);
  expect(asked(text).filter((name) => !known.includes(name))).toEqual([]);
});

test("the operator's rules ask only for metrics that it has", () => {
  const folder = join(__dirname, "..", "..", "controllers", "multus");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".ts"));
  const sources = files.map((name) => readFileSync(join(folder, name), "utf8")).join("\n");
  const chart = new Chart(new App(), "chart");
  new LinkerdMultus(chart, "multus", { prometheusRule: { enabled: true } });
  const text = JSON.stringify((chart.toJson() as { kind: string }[]).filter(({ kind }) => kind === "PrometheusRule"));
  const names = [...new Set([...text.matchAll(/\blinkerd_multus_(\w+)/g)].map(([, name = ""]) => name))];
  expect(names.length).toBeGreaterThan(4);
  expect(names.filter((name) => !new RegExp(`"(linkerd_multus_)?${name}"`).test(sources))).toEqual([]);
});

test("documents name only metrics that the processes have", async () => {
  const docs = join(__dirname, "..", "..", "docs");
  const files = readdirSync(docs, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".md"));
  const text = files.map((name) => readFileSync(join(docs, name), "utf8")).join("\n");
  const known = [...namesIn(await exposedMetrics()).flat(), REPAIR_PREFIX, "linkerd_cni_nri_"];
  expect(asked(text).filter((name) => !known.includes(name))).toEqual([]);
});

test("every metric has a row in the documents", async () => {
  const docs = join(__dirname, "..", "..", "docs");
  const pages = ["operate.md", "nri.md"].map((name) => readFileSync(join(docs, name), "utf8"));
  // The repair controller's page names its common prefix once.
  const rows = pages.flatMap((page) => page.split("\n").filter((line) => line.startsWith("|"))).join("\n");
  const has = (name: string) => rows.includes(`\`${name}\``) || rows.includes(`\`${name.replace(REPAIR_PREFIX, "")}\``);
  const names = namesIn(await exposedMetrics()).map(([name = ""]) => name);
  expect(names.filter((name) => !has(name))).toEqual([]);
});

test.each([
  ["installer", installerInstruments()],
  ["controllers/repair", repairMetrics()],
  ["nri", nriMetrics({ connected: () => true, synchronized: () => true })],
])("%s: every metric is counted", (part, metrics) => {
  const folder = join(__dirname, "..", "..", part);
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
    (name) => name.endsWith(".ts") && !/(\.test|\.testing|metrics|instruments)\.ts$/.test(name),
  );
  const sources = files.map((name) => readFileSync(join(folder, name), "utf8")).join("\n");
  const names = Object.keys(metrics).filter((name) => name !== "registry" && name !== "read");
  expect(names.length).toBeGreaterThan(4);
  expect(names.filter((name) => !new RegExp(`\\b(instruments|metrics)\\.${name}\\b`).test(sources))).toEqual([]);
});

test("every metric is on the dashboard", async () => {
  const shown = asked(dashboard);
  const hidden = namesIn(await exposedMetrics()).filter((parts) => !parts.some((name) => shown.includes(name)));
  expect(hidden).toEqual([]);
});

test("without the label node the pod's name tells one node from another, on alerts and dashboard", () => {
  const grouped = [...`${rules} ${dashboard}`.matchAll(/by \(([^)]*)\)/g)].map(([, inner = ""]) => inner.split(", "));
  expect(grouped.filter((labels) => labels.includes("node") !== labels.includes("pod"))).toEqual([]);
  expect(dashboard).not.toMatch(/legendFormat\W+\{\{node\}\}\W*"/);
});

test("the labels that are asked for are those that the processes set", async () => {
  const known = labelsIn(await exposedMetrics());
  const queries = `${rules} ${dashboard}`.replaceAll("\\", "");
  const selected = [...queries.matchAll(/linkerd_cni_\w+\{([^}]*)\}/g)].flatMap(([, inner = ""]) => [
    ...inner.matchAll(/(\w+)(?:!=|=~|=)"/g),
  ]);
  const grouped = [...queries.matchAll(/sum by \(([^)]*)\)/g)].flatMap(([, inner = ""]) => inner.split(", "));
  const wanted = new Set([...selected.map(([, label = ""]) => label), ...grouped]);
  // These two are the PodMonitor's.
  expect([...wanted].filter((label) => !known.includes(label)).sort()).toEqual(["node", "pod"]);
});
