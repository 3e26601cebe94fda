import { existsSync } from "node:fs";
import { join } from "node:path";
import { dashboard } from "./dashboard";

test("the panels cover the page, and none lies on another", () => {
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
    if (!("description" in panel)) continue;
    expect(panel.description).toMatch(/^[A-Z].*[.]$/s);
    for (const { title, url } of panel.links) {
      expect(url).toMatch(new RegExp(`/docs/runbooks/${title}[.]md$`));
      expect(existsSync(join(__dirname, "..", "..", "docs", "runbooks", `${title}.md`))).toBe(true);
    }
  }
});

test("what is counted over time has the unit of a rate", () => {
  for (const panel of dashboard.panels) {
    if (!("targets" in panel) || panel.type !== "timeseries") continue;
    const isRate = panel.targets.some(({ expr }) => /^sum( by \([^)]*\))? \(rate\(|^sum\(rate\([^/]*$/.test(expr));
    if (isRate) expect([panel.title, panel.fieldConfig.defaults.unit]).toEqual([panel.title, "ops"]);
  }
});
