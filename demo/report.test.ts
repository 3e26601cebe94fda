import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Report, render } from "./report";

const probe = {
  title: "to a service",
  to: "10.0.0.2",
  port: 80,
  family: 4,
  expect: "proxy",
  reached: "proxy",
  passed: true,
};

const report = {
  steps: [],
  adds: [{ pod: "cart", meshed: true, milliseconds: 123.4, apiRequests: 4 }],
  probes: Array.from({ length: 100 }, () => probe),
  differences: [],
  notShown: ["pods and their traffic: unshare (util-linux) is not installed"],
} as unknown as Report;

test.each([
  ["all as it should be", report],
  ["a connection that went wrong", { ...report, probes: [...report.probes, { ...probe, passed: false }] } as Report],
])("%s: the result fits into 80 columns", (_, shown) => {
  const text = render(shown, false);
  const begin = text.indexOf("Result");
  expect(
    text
      .slice(begin, text.indexOf("Pods started"))
      .split("\n")
      .filter((line) => line.length > 80),
  ).toEqual([]);
});

test("the way into a cluster is a section of README, and has no second place", () => {
  const text = render(report, false);
  const [, anchor] = /Into a cluster: README\.md#(\S+)/.exec(text) ?? [];
  const headings = readFileSync(join(__dirname, "..", "README.md"), "utf8").match(/(?<=^##+ ).*$/gm) ?? [];
  expect(headings.map((heading) => heading.toLowerCase().replaceAll(" ", "-"))).toContain(anchor);
  expect(text).not.toMatch(/helm|kubectl/);
});
