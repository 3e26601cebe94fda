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
