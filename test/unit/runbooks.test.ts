import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { App, Chart } from "cdk8s";
import { LinkerdCni, LinkerdMultus } from "../../constructs";

const root = join(__dirname, "..", "..");
const folder = join(root, "docs", "runbooks");
const read = (name: string): string => readFileSync(join(folder, name), "utf8");

function sources(part: string): readonly string[] {
  const files = readdirSync(join(root, part), { recursive: true, encoding: "utf8" });
  const own = files.filter((name) => name.endsWith(".ts") && !name.endsWith(".test.ts"));
  return own.map((name) => readFileSync(join(root, part, name), "utf8"));
}

/** Reasons of Events have such names, and nothing else has. */
const reasons = ["installer", "controllers"]
  .flatMap(sources)
  .flatMap((text) => [...text.matchAll(/"(Linkerd(?:CNI|Multus)[A-Z]\w+)"/g)])
  .map(([, reason = ""]) => reason);

function alerts(): readonly string[] {
  const chart = new Chart(new App(), "chart");
  const enabled = { enabled: true };
  new LinkerdCni(chart, "cni", {
    ...{ prometheusRule: enabled, podMonitor: enabled },
    ...{ repairController: enabled, nri: enabled },
  });
  new LinkerdMultus(chart, "multus", { prometheusRule: enabled, podMonitor: enabled });
  const found = (chart.toJson() as { kind: string }[]).filter(({ kind }) => kind === "PrometheusRule");
  return [...JSON.stringify(found).matchAll(/"alert":"(\w+)"/g)].map(([, alert = ""]) => alert);
}

const names = [...new Set([...reasons, ...alerts()])].sort();
const pages = readdirSync(folder).filter((name) => name !== "README.md");

test("every Event's reason and every alert has a page, and every page is of one", () => {
  expect(reasons.length).toBeGreaterThan(5);
  expect(alerts()).toHaveLength(18);
  expect(pages.filter((page) => page.startsWith("Linkerd")).sort()).toEqual(names.map((name) => `${name}.md`));
});

test.each(names)("%s: what it means, how to see it, what to do", (name) => {
  const text = read(`${name}.md`);
  expect(text.split("\n")[0]).toBe(`# ${name}`);
  const parts = ["**Meaning.**", "**See it.**", "**What to do.**"].map((part) => text.indexOf(part));
  expect(parts).toEqual([...parts].sort((a, b) => a - b));
  expect(parts).not.toContain(-1);
  expect(text.split("\n").length).toBeLessThan(60);
});

test("the list links to every page, and every link leads somewhere", () => {
  const linked = (text: string) => [...text.matchAll(/\]\(([^)#:]+\.md)\)/g)].map(([, page = ""]) => page);
  expect([...new Set(linked(read("README.md")))].sort()).toEqual([...pages].sort());
  for (const page of pages) expect(linked(read(page)).filter((to) => !pages.includes(to))).toEqual([]);
});

test("logs are read from every pod: kubectl picks a single one of a DaemonSet", () => {
  for (const page of pages) expect(read(page)).not.toMatch(/logs (ds|daemonset)\//);
});
