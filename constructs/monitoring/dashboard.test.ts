import { existsSync } from "node:fs";
import { join } from "node:path";
import { repository } from "../version";
import dashboard from "./dashboard.json";
import { dashboardFor } from "./monitoring";

test("the panels cover the page and do not overlap", () => {
  const taken = new Set<string>();
  for (const { gridPos } of dashboard.panels) {
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
        expect(taken).not.toContain(`${x} ${y}`);
        taken.add(`${x} ${y}`);
      }
    }
  }
  const bottom = Math.max(...dashboard.panels.map(({ gridPos: { y, h } }) => y + h));
  expect(taken.size).toBe(24 * bottom);
});

test("each panel says what it shows, and links to runbooks that exist", () => {
  for (const panel of dashboard.panels) {
    if (panel.type === "row") continue;
    expect(panel.description).toMatch(/^[A-Z].*[.]$/s);
    for (const { title, url } of panel.links ?? []) {
      expect(url).toBe(`${repository}/blob/main/docs/runbooks/${title}.md`);
      expect(existsSync(join(__dirname, "..", "..", "docs", "runbooks", `${title}.md`))).toBe(true);
    }
  }
});

test("counters over time have the unit of a rate", () => {
  for (const { type, title, targets, fieldConfig } of dashboard.panels) {
    if (type !== "timeseries") continue;
    const isRate = targets?.some(({ expr }) => /^sum( by \([^)]*\))? \(rate\(|^sum\(rate\([^/]*$/.test(expr));
    if (isRate) expect([title, fieldConfig?.defaults.unit]).toEqual([title, "ops"]);
  }
});

const titlesOf = (panels: readonly { readonly title: string }[]) => panels.map(({ title }) => title);

test.each([
  {
    feature: "Repair controller",
    prefix: "linkerd_cni_repair_controller_",
    stats: ["How many pods are outside the mesh?", "How many owners are suspended?"],
  },
  { feature: "NRI plugin", prefix: "linkerd_cni_nri_", stats: [] },
])("$feature: if it is disabled, its row and its numbers at the top are absent", ({ feature, prefix, stats }) => {
  const all = dashboard.panels;
  const start = all.findIndex(({ title }) => title === feature);
  const end = all.findIndex(({ type }, index) => index > start && type === "row");
  const row = titlesOf(all.slice(start, end === -1 ? undefined : end));
  const shown = (isOn: boolean) => titlesOf(dashboardFor({ [prefix]: isOn })["panels"] as typeof all);
  expect(row.length).toBeGreaterThan(3);
  expect(shown(true)).toEqual(titlesOf(all));
  expect(shown(false)).toEqual(titlesOf(all).filter((title) => ![...row, ...stats].includes(title)));
});
