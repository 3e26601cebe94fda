import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../build/paths";
import { RESULTS } from "../../build/results";
import { picture } from "../bench/chart";
import { currentPage, type PluginResults, pluginTable, withTables } from "../bench/tables";

const page = readFileSync(join(root, "docs", "contribute", "benchmarks.md"), "utf8");

test("the tables of docs/contribute/benchmarks.md are current: run `npm run bench -- --tables`", async () => {
  expect(await currentPage(page)).toBe(page);
  expect(page).toContain("| meshed, API server at once |");
});

test("bench/plugin.svg is current, and says in words when the API server answers: run `npm run bench -- --tables`", () => {
  const { plugin } = JSON.parse(readFileSync(RESULTS, "utf8")) as { plugin: PluginResults };
  const made = readFileSync(join(RESULTS, "..", "plugin.svg"), "utf8");
  expect(made).toBe(picture(plugin));
  expect(made).toContain(">not meshed, API server answers at once<");
  expect(made).not.toContain(" 0 ms");
});

test("only what stands between the marks is replaced", () => {
  const made = withTables("before\n<!-- bench:begin -->\nSTALE\n<!-- bench:end -->\nafter\n", "new");
  expect(made).toBe("before\n<!-- bench:begin -->\nnew\n<!-- bench:end -->\nafter\n");
});

test("a missing mark is named", () => {
  expect(() => withTables("no marks", "")).toThrow("docs/contribute/benchmarks.md needs <!-- bench:begin -->");
});

test("the README has fewer than 1,800 words, and leaves the values to the chart's README", () => {
  const readme = readFileSync(join(root, "README.md"), "utf8");
  expect(readme.split(/\s+/).length).toBeLessThan(1_800);
  expect(readme).not.toContain("| inboundProxyPort |");
});

test("a benchmark without linkerd's plugin has a table too", () => {
  const ours = { medianMs: 1234, p99Ms: 12.34, requests: 1 };
  const made = pluginTable({
    date: "2026-07-01",
    machine: { cpu: "x", cores: 2, kernel: "6" },
    scenarios: [{ pod: "unmeshed", delayMs: 10, parallel: 50, rounds: 1, ours }],
    executables: [{ name: "ours", bytes: 1_490_000, starts: 100, startMs: 1.23 }],
    costs: [
      { name: "ours", pod: "meshed", peakMiB: 2.44 },
      { name: "ours", pod: "unmeshed", programs: 0 },
    ],
    limits: [
      { what: "a large pod", medianMs: 140, peakMiB: 21, outcome: "redirected" },
      { what: "too many ports", medianMs: 4, outcome: "CNI error 7" },
    ],
  });
  expect(made).toContain("| not meshed, 50 at once, API server after 10 ms | 1.2 s | - | - | 12.3 ms | - | - | 1 |");
  expect(made).toContain("| size of the executable | 1.5 MB | - |\n| start (VERSION, median of 100) | 1.2 ms | - |");
  expect(made).toContain("| peak memory, meshed | 2.4 MiB | - |\n| peak memory, not meshed | unknown | - |");
  expect(made).toContain("| programs started, meshed | unknown | - |");
  expect(made).toContain("| a large pod | 140.0 ms | 21.0 MiB | redirected |");
  expect(made).toContain("| too many ports | 4.0 ms | unknown | CNI error 7 |");
});

interface Results {
  readonly plugin: {
    readonly executables: readonly { readonly name: string; readonly bytes: number }[];
    readonly scenarios: readonly {
      readonly pod: string;
      readonly delayMs: number;
      readonly parallel: number;
      readonly ours: { readonly medianMs: number };
      readonly peer: { readonly medianMs: number };
    }[];
  };
  readonly image: Readonly<Record<string, { readonly compressedMB: number; readonly uncompressedMB: number }>>;
}

const { plugin, image } = JSON.parse(readFileSync(RESULTS, "utf8")) as Results;
const executable = plugin.executables.find(({ name }) => name === "ours");
const meshed = plugin.scenarios.find(({ pod, delayMs, parallel }) => pod === "meshed" && delayMs + parallel === 1);

/** What pages say in words about measurements, and the numbers that they have to give. */
const claims: readonly (readonly [RegExp, readonly (string | undefined)[]])[] = [
  [/static executable of about ([\d.]+) MB/g, [((executable?.bytes ?? 0) / 1e6).toFixed(1)]],
  [
    /call \(ADD\) for a meshed pod takes ([\d.]+) ms in the median, linkerd's ([\d.]+) ms/g,
    [meshed?.ours.medianMs.toFixed(1), meshed?.peer.medianMs.toFixed(1)],
  ],
  [
    /([\d.]+) MB compressed and ([\d.]+) MB unpacked, nearly all/g,
    [image["linux/amd64"]?.compressedMB.toFixed(1), image["linux/amd64"]?.uncompressedMB.toFixed(1)],
  ],
];

const written = ["README.md", "CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md"].concat(
  readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => join("docs", name)),
);

test.each(claims)("pages that say %s give the numbers of bench/results.json", (pattern, numbers) => {
  const found = written.flatMap((name) =>
    [...readFileSync(join(root, name), "utf8").replace(/\s+/g, " ").matchAll(pattern)].map(([, ...given]) => ({
      name,
      given,
    })),
  );
  expect(found).not.toEqual([]);
  expect(found).toEqual(found.map(({ name }) => ({ name, given: numbers })));
});

test.each(written)("%s compares no times in words, which would go stale unseen", (name) => {
  const text = readFileSync(join(root, name), "utf8");
  expect(text).not.toMatch(/(a|one) (third|quarter|fifth|sixth|tenth) of the time|times (as fast|faster)/);
});
