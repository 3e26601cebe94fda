/**
 * `npm run bench`: measures the plugin's executable and, if LINKERD_CNI_PEER names it, linkerd's, side by side.
 * `npm run bench -- --quick` calls everything a few times, to try it, and records nothing; `--tables` only writes the
 * picture of the last results, and their tables into docs/contribute/benchmarks.md.
 */
import { mkdtemp, open, readFile, rm, writeFile } from "node:fs/promises";
import { cpus, release, tmpdir } from "node:os";
import { join } from "node:path";
import { outputs } from "../../build/paths";
import { buildPlugin } from "../../build/programs";
import { RESULTS, recordResult } from "../../build/results";
import { hasProgram, namespacesMissing } from "../support/netns";
import { picture } from "./chart";
import { installerStarts } from "./installer";
import { largeCalls } from "./limits";
import { Bench, type Contestant, type Scenario } from "./measure";
import { nriCosts } from "./nri";
import {
  type CallCost,
  type ExecutableResult,
  type LimitResult,
  type LookupCost,
  type PluginResults,
  pluginTable,
  type ScenarioResult,
  updateBenchmarks,
} from "./tables";

/** Calls everything only a few times, and records nothing. */
const isQuick = process.argv.includes("--quick");
const rounds = (many: number) => (isQuick ? Math.min(many, 2) : many);
const parallel = (many: number) => (isQuick ? Math.min(many, 4) : many);

const scenarios: readonly Scenario[] = [
  ...(["meshed", "unmeshed"] as const).flatMap((pod) =>
    [0, 10].flatMap((delayMs) => [
      { pod, delayMs, parallel: 1, rounds: rounds(60) },
      { pod, delayMs, parallel: parallel(50), rounds: rounds(3) },
    ]),
  ),
  { pod: "meshed", delayMs: 500, parallel: parallel(200), rounds: 1 },
];

const rounded = (value: number, digits = 2) => Number(value.toFixed(digits));

function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0;
}

const median = (times: readonly number[]) =>
  rounded(
    quantile(
      [...times].sort((one, other) => one - other),
      0.5,
    ),
  );

function numbers(times: readonly number[], requests: number): ScenarioResult["ours"] {
  const sorted = [...times].sort((one, other) => one - other);
  return {
    medianMs: rounded(quantile(sorted, 0.5)),
    p99Ms: rounded(quantile(sorted, 0.99)),
    requests: rounded(requests / times.length),
  };
}

/** Rounds that do not count: the API server has just started, and its answers get faster at first. */
const WARM_UP = rounds(20);
/** How often each executable is started, and each large call is made. */
const STARTS = rounds(100);
const LARGE_CALLS = rounds(20);
/** The shortest deadline of a caller: an NRI plugin's, by containerd's default. */
const DEADLINE_MS = 2000;

/** Runs both plugins in turn, so that other load affects both. */
async function run(bench: Bench, contestants: readonly Contestant[], scenario: Scenario): Promise<ScenarioResult> {
  const times: Record<string, number[]> = {};
  const requests: Record<string, number> = {};
  await bench.delay(scenario.delayMs);
  for (let round = 0; round < WARM_UP; round++) {
    for (const one of contestants) await bench.round(one, { ...scenario, parallel: 1 });
  }
  await bench.delay(scenario.delayMs);
  for (let round = 0; round < scenario.rounds; round++) {
    for (const one of contestants) {
      times[one.name] = [...(times[one.name] ?? []), ...(await bench.round(one, scenario))];
      requests[one.name] = (requests[one.name] ?? 0) + (await bench.delay(scenario.delayMs)).requests;
    }
  }
  const of = (name: string) => numbers(times[name] ?? [], requests[name] ?? 0);
  const ours = of("ours");
  if (times["peer"] === undefined) return { ...scenario, ours };
  const peer = of("peer");
  const ratio = { median: rounded(ours.medianMs / peer.medianMs), p99: rounded(ours.p99Ms / peer.p99Ms) };
  return { ...scenario, ours, peer, ratio };
}

/** Sequential ADDs, to measure their cost for the API server and the installer. */
const LOOKUPS = rounds(1000);

async function lookups(bench: Bench, ours: Contestant): Promise<LookupCost> {
  await bench.delay(0);
  const beforeMiB = rounded(bench.installerMiB(), 1);
  const scenario = { pod: "meshed", delayMs: 0, parallel: 4, rounds: LOOKUPS / 4 } as const;
  for (let round = 0; round < scenario.rounds; round++) await bench.round(ours, scenario);
  const { requests, handshakes } = await bench.delay(0);
  return { calls: scenario.rounds * 4, requests, handshakes, beforeMiB, afterMiB: rounded(bench.installerMiB(), 1) };
}

async function costs(bench: Bench, contestants: readonly Contestant[]): Promise<CallCost[]> {
  const found: CallCost[] = [];
  for (const one of contestants) {
    for (const pod of ["meshed", "unmeshed"] as const) {
      const programs = await bench.programs(one, pod);
      const peak = await bench.peakMemory(one, pod);
      found.push({
        name: one.name,
        pod,
        ...(programs === undefined ? {} : { programs }),
        ...(peak === undefined ? {} : { peakMiB: rounded(peak, 1) }),
      });
    }
  }
  return found;
}

/** Sizes, and starts in turn. */
async function executables(bench: Bench, contestants: readonly Contestant[]): Promise<ExecutableResult[]> {
  const times = contestants.map((): number[] => []);
  for (let start = 0; start < STARTS; start++) {
    for (const [at, one] of contestants.entries()) times[at]?.push(await bench.start(one));
  }
  const found = contestants.map(async (one, at) => ({
    name: one.name as ExecutableResult["name"],
    bytes: await bench.size(one),
    starts: STARTS,
    startMs: median(times[at] ?? []),
  }));
  return Promise.all(found);
}

async function limits(bench: Bench, ours: Contestant): Promise<LimitResult[]> {
  await bench.delay(0);
  const found: LimitResult[] = [];
  for (const call of largeCalls) {
    process.stderr.write(`${call.what}\n`);
    const outcomes = [];
    for (let round = 0; round < LARGE_CALLS; round++) outcomes.push(await bench.large(ours, call));
    const peak = await bench.largePeak(ours, call);
    const medianMs = median(outcomes.map(({ tookMs }) => tookMs));
    const outcome = [...new Set(outcomes.map((one) => one.outcome))].join(", ");
    const slowest = Math.max(...outcomes.map(({ tookMs }) => tookMs));
    process.stderr.write(`  ${outcome}; slowest ${slowest.toFixed(1)} ms, of ${DEADLINE_MS} ms\n`);
    found.push({ what: call.what, medianMs, ...(peak === undefined ? {} : { peakMiB: rounded(peak, 1) }), outcome });
  }
  return found;
}

function titleOf({ pod, delayMs, parallel }: Scenario): string {
  return `${pod}, API ${delayMs} ms, ${parallel === 1 ? "one" : `${parallel} at once`}`;
}

function machine(): PluginResults["machine"] {
  return { cpu: cpus()[0]?.model ?? "", cores: cpus().length, kernel: release().split(".").slice(0, 2).join(".") };
}

/** Writes picture and tables of the last results. */
async function publish(): Promise<void> {
  const { plugin } = JSON.parse(await readFile(RESULTS, "utf8")) as { plugin: PluginResults };
  await writeFile(join(RESULTS, "..", "plugin.svg"), picture(plugin));
  await updateBenchmarks();
}

/** Builds the executable and syncs it to disk, so that the write does not disturb the measurement. */
async function build(): Promise<void> {
  process.stderr.write("building the plugin\n");
  await buildPlugin();
  const file = await open(outputs.plugin);
  await file.sync();
  await file.close();
}

async function main(): Promise<void> {
  if (process.argv.includes("--tables")) return publish();
  const missing = namespacesMissing() ?? (hasProgram("python3") ? undefined : "python3");
  if (missing !== undefined) throw new Error(`the benchmark needs ${missing}`);
  await build();
  const peer = process.env["LINKERD_CNI_PEER"];
  if (peer === undefined) process.stderr.write("LINKERD_CNI_PEER names no executable: measuring ours alone\n");
  const ours: Contestant = { name: "ours", executable: outputs.plugin, mode: "auto" };
  const contestants: Contestant[] = [
    ours,
    ...(peer === undefined ? [] : [{ name: "peer" as const, executable: peer, mode: "nft" }]),
  ];
  const directory = await mkdtemp(join(tmpdir(), "bench-"));
  const bench = await Bench.open(directory);
  try {
    const started = await executables(bench, contestants);
    const found: ScenarioResult[] = [];
    for (const scenario of scenarios) {
      process.stderr.write(`${titleOf(scenario)}\n`);
      found.push(await run(bench, contestants, scenario));
    }
    const results: PluginResults = {
      date: new Date().toISOString().slice(0, 10),
      machine: machine(),
      executables: started,
      scenarios: found,
      costs: await costs(bench, contestants),
      lookups: await lookups(bench, ours),
      limits: await limits(bench, ours),
    };
    process.stdout.write(`${pluginTable(results)}\n`);
    process.stdout.write(`RunPodSandbox of the NRI plugin\n${(await nriCosts(LARGE_CALLS)).join("\n")}\n`);
    process.stdout.write(`the installer, from its start until it is ready\n${await installerStarts(LARGE_CALLS)}\n`);
    if (isQuick) return;
    await recordResult("plugin", results);
    await publish();
  } finally {
    await bench.close();
    await rm(directory, { recursive: true });
  }
}

main().catch((error: unknown) => {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
