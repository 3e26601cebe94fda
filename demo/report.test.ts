import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Report, render } from "./report";

const report: Report = { adds: [], probes: [], differences: [], notShown: [] };

test("the way into a cluster is a section of README, and has no second place", () => {
  const text = render(report);
  const [, anchor] = /Into a cluster: README\.md#(\S+)/.exec(text) ?? [];
  const headings = readFileSync(join(__dirname, "..", "README.md"), "utf8").match(/(?<=^##+ ).*$/gm) ?? [];
  expect(headings.map((heading) => heading.toLowerCase().replaceAll(" ", "-"))).toContain(anchor);
  expect(text).not.toMatch(/helm|kubectl/);
});
