import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { root } from "../../build/paths";
import { RESULTS } from "../../build/results";

interface Numbers {
  /** Milliseconds. */
  readonly medianMs: number;
  readonly p99Ms: number;
  /** Requests to the API server per call. */
  readonly requests: number;
}

/** A fraction of the peer's time. */
interface Ratio {
  readonly median: number;
  readonly p99: number;
}

/** One measured way of calling; `ratio` is our time divided by the peer's. */
export interface ScenarioResult {
  readonly pod: "meshed" | "unmeshed";
  /** Milliseconds until the API server answers. */
  readonly delayMs: number;
  /** Number of calls started at once. */
  readonly parallel: number;
  /** Number of repetitions. */
  readonly rounds: number;
  readonly ours: Numbers;
  /** Our time if the installer does not answer. */
  readonly direct?: Numbers;
  readonly peer?: Numbers;
  readonly ratio?: Ratio;
  readonly directRatio?: Ratio;
}

/** An executable, and the time of a VERSION call. */
export interface ExecutableResult {
  readonly name: "ours" | "peer";
  readonly bytes: number;
  /** Number of starts. */
  readonly starts: number;
  /** Milliseconds, the median. */
  readonly startMs: number;
}

/** The cost of look-ups through the installer. */
export interface LookupCost {
  readonly calls: number;
  /** The API server's view of these calls. */
  readonly requests: number;
  readonly handshakes: number;
  /** Resident memory of the installer. */
  readonly beforeMiB: number;
  readonly afterMiB: number;
}

/** The cost of an ADD, except time. */
export interface CallCost {
  readonly name: "ours" | "peer";
  readonly pod: "meshed" | "unmeshed";
  /** Programs started; unknown without strace. */
  readonly programs?: number;
  /** Peak resident memory of the largest process of the call; unknown without GNU time. */
  readonly peakMiB?: number;
}

/** A call with maximum input. */
export interface LimitResult {
  readonly what: string;
  readonly medianMs: number;
  /** Unknown without GNU time. */
  readonly peakMiB?: number;
  /** `redirected`, `as it was set` of a CHECK, or the code of the CNI error. */
  readonly outcome: string;
}

/** The plugin's part of bench/results.json. */
export interface PluginResults {
  /** `2026-07-01`. */
  readonly date: string;
  readonly machine: { readonly cpu: string; readonly cores: number; readonly kernel: string };
  readonly scenarios: readonly ScenarioResult[];
  readonly costs: readonly CallCost[];
  readonly executables: readonly ExecutableResult[];
  readonly lookups?: LookupCost;
  readonly limits: readonly LimitResult[];
}

const SECOND = 1000;

function time(milliseconds: number): string {
  return milliseconds < SECOND ? `${milliseconds.toFixed(1)} ms` : `${(milliseconds / SECOND).toFixed(1)} s`;
}

function what({ pod, delayMs, parallel }: ScenarioResult): string {
  const many = parallel === 1 ? "" : `, ${parallel} at once`;
  return `${pod === "meshed" ? pod : "not meshed"}${many}, API server ${delayMs === 0 ? "at once" : `after ${delayMs} ms`}`;
}

function row(result: ScenarioResult): string {
  const { ours, peer, ratio } = result;
  const both = (of: (numbers: Numbers) => string) => [of(ours), peer === undefined ? "-" : of(peer)];
  const requests = peer === undefined ? ours.requests : `${ours.requests} against ${peer.requests}`;
  const median = [...both(({ medianMs }) => time(medianMs)), ratio?.median.toFixed(2) ?? "-"];
  const p99 = [...both(({ p99Ms }) => time(p99Ms)), ratio?.p99.toFixed(2) ?? "-"];
  return `| ${[what(result), ...median, ...p99, requests].join(" | ")} |`;
}

const memory = (peakMiB: number | undefined) => (peakMiB === undefined ? "unknown" : `${peakMiB.toFixed(1)} MiB`);

function costTable(executables: readonly ExecutableResult[], costs: readonly CallCost[]): string[] {
  const of = <T extends { readonly name: string }>(found: readonly T[], text: (one: T) => string) =>
    (["ours", "peer"] as const).map((name) => found.filter((one) => one.name === name).map(text)[0] ?? "-");
  const meshed = costs.filter(({ pod }) => pod === "meshed");
  const unmeshed = costs.filter(({ pod }) => pod === "unmeshed");
  const rows = [
    ["size of the executable", ...of(executables, ({ bytes }) => `${(bytes / 1e6).toFixed(1)} MB`)],
    [`start (VERSION, median of ${executables[0]?.starts})`, ...of(executables, ({ startMs }) => time(startMs))],
    ["peak memory, meshed", ...of(meshed, ({ peakMiB }) => memory(peakMiB))],
    ["peak memory, not meshed", ...of(unmeshed, ({ peakMiB }) => memory(peakMiB))],
    ["programs started, meshed", ...of(meshed, ({ programs }) => `${programs ?? "unknown"}`)],
  ];
  return ["| one call | ours | linkerd's |", "|---|---|---|", ...rows.map((cells) => `| ${cells.join(" | ")} |`)];
}

function limitTable(limits: readonly LimitResult[]): string[] {
  const row = ({ what, medianMs, peakMiB, outcome }: LimitResult) =>
    `| ${[what, time(medianMs), memory(peakMiB), outcome].join(" | ")} |`;
  return [
    "| large call of a meshed pod, ours | median | peak memory | outcome |",
    "|---|---|---|---|",
    ...limits.map(row),
  ];
}

function directTable(scenarios: readonly ScenarioResult[]): string[] {
  const rows = scenarios.flatMap((result) => {
    const { direct, directRatio } = result;
    if (direct === undefined || result.pod === "unmeshed") return [];
    const median = [time(direct.medianMs), directRatio?.median.toFixed(2) ?? "-"];
    return [[what(result), ...median, time(direct.p99Ms), directRatio?.p99.toFixed(2) ?? "-"]];
  });
  if (rows.length === 0) return [];
  return [
    "",
    "| ADD if the installer does not answer | ours, median | ratio | ours, p99 | ratio |",
    "|---|---|---|---|---|",
    ...rows.map((cells) => `| ${cells.join(" | ")} |`),
  ];
}

function lookupText({ calls, requests, handshakes, beforeMiB, afterMiB }: LookupCost): string {
  return (
    `The API server saw ${requests} requests and ${handshakes} TLS handshakes of ${calls} ADDs of meshed pods; ` +
    `the installer took ${memory(beforeMiB)} before them and ${memory(afterMiB)} after them.`
  );
}

/** The results as Markdown. */
export function pluginTable(results: PluginResults): string {
  const { date, machine, scenarios, costs, executables, lookups, limits } = results;
  return [
    `${date}, ${machine.cores} cores, kernel ${machine.kernel}.`,
    "",
    "| ADD | ours, median | linkerd's | ratio | ours, p99 | linkerd's | ratio | requests |",
    "|---|---|---|---|---|---|---|---|",
    ...scenarios.map(row),
    ...directTable(scenarios),
    ...(lookups === undefined ? [] : ["", lookupText(lookups)]),
    ...(executables.length > 0 ? ["", ...costTable(executables, costs)] : []),
    ...(limits.length > 0 ? ["", ...limitTable(limits)] : []),
  ].join("\n");
}

const PAGE = join(root, "docs", "contribute", "benchmarks.md");
const [BEGIN, END] = ["<!-- bench:begin -->", "<!-- bench:end -->"];

/** Replaces the tables between the marks of a page. @throws if a mark is missing */
export function withTables(page: string, tables: string): string {
  const [begin, end] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (begin < 0 || end < begin) throw new Error(`docs/contribute/benchmarks.md needs ${BEGIN} and after it ${END}`);
  return `${page.slice(0, begin + BEGIN.length)}\n${tables}\n${page.slice(end)}`;
}

/** Renders docs/contribute/benchmarks.md with the tables of the last benchmark. */
export async function currentPage(page: string): Promise<string> {
  const { plugin } = JSON.parse(await readFile(RESULTS, "utf8")) as { plugin: PluginResults };
  return withTables(page, pluginTable(plugin));
}

/** Writes the tables of bench/results.json into docs/contribute/benchmarks.md. */
export async function updateBenchmarks(): Promise<void> {
  await writeFile(`${PAGE}.new`, await currentPage(await readFile(PAGE, "utf8")));
  await rename(`${PAGE}.new`, PAGE);
}
