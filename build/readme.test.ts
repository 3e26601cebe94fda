import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./paths";
import { withValuesTable } from "./readme";

const readme = readFileSync(join(root, "README.md"), "utf8");

test("the README's table of values is current: run `npm run build -- readme`", () => {
  expect(withValuesTable(readme)).toBe(readme);
  expect(readme).toContain("| inboundProxyPort | int | `4143` |");
});

test("what stands between the marks is replaced, and nothing else", () => {
  const made = withValuesTable("before\n<!-- values:begin -->\nSTALE\n<!-- values:end -->\nafter\n");
  expect(made).toMatch(/^before\n<!-- values:begin -->\n\| Value \|/);
  expect(made).toMatch(/\|\n<!-- values:end -->\nafter\n$/);
  expect(made).not.toContain("STALE");
});

test("a missing mark is named", () => {
  expect(() => withValuesTable("no marks")).toThrow("README.md needs <!-- values:begin -->");
});
