import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pluginTable } from "./bench-table";
import { root } from "./paths";
import { currentReadme, withSection } from "./readme";

const readme = readFileSync(join(root, "README.md"), "utf8");

test("the README's tables are current: run `npm run build -- readme`", async () => {
  expect(await currentReadme(readme)).toBe(readme);
  expect(readme).toContain("| inboundProxyPort | int | `4143` |");
  expect(readme).toContain("| meshed, API server at once |");
});

test("what stands between the marks is replaced, and nothing else", () => {
  const made = withSection("before\n<!-- a:begin -->\nSTALE\n<!-- a:end -->\nafter\n", "a", "new");
  expect(made).toBe("before\n<!-- a:begin -->\nnew\n<!-- a:end -->\nafter\n");
});

test("a missing mark is named", () => {
  expect(() => withSection("no marks", "values", "")).toThrow("README.md needs <!-- values:begin -->");
});

test("a benchmark without linkerd's plugin has a table too", () => {
  const ours = { medianMs: 1234, p99Ms: 12.34, requests: 1 };
  const made = pluginTable({
    date: "2026-07-01",
    machine: { cpu: "x", cores: 2, kernel: "6" },
    scenarios: [{ pod: "unmeshed", delayMs: 10, parallel: 50, rounds: 1, ours }],
    costs: [{ name: "ours", pod: "meshed", peakMiB: 57.4 }],
  });
  expect(made).toContain("| not meshed, 50 at once, API server after 10 ms | 1.2 s | - | - | 12.3 ms | - | - | 1 |");
  expect(made).toContain("For a meshed pod ours starts an unknown number of programs and takes 57 MiB at its peak.");
});
