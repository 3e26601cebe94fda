/** The plugin's executable and, where LINKERD_CNI_PEER names it, linkerd's, side by side. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { cpus, release, tmpdir } from "node:os";
import { join } from "node:path";
import Table from "cli-table3";
import type { CallCost, ScenarioResult } from "../../build/bench-table";
import { outputs } from "../../build/paths";
import { updateReadme } from "../../build/readme";
import { RESULTS, recordResult } from "../../build/results";
import { chart } from "./chart";
import { Bench, type Contestant, type Scenario } from "./measure";

const scenarios: readonly Scenario[] = [
  ...(["meshed", "unmeshed"] as const).flatMap((pod) =>
    [0, 10].flatMap((delayMs) => [
      { pod, delayMs, parallel: 1, rounds: 60 },
      { pod, delayMs, parallel: 50, rounds: 3 },
    ]),
  ),
  { pod: "meshed", delayMs: 500, parallel: 200, rounds: 1 },
];

const rounded = (value: number, digits = 2) => Number(value.toFixed(digits));

function quantile(sorted: readonly number[], part: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0;
}

function numbers(times: readonly number[], requests: number): ScenarioResult["ours"] {
  const sorted = [...times].sort((one, other) => one - other);
  return {
    medianMs: rounded(quantile(sorted, 0.5)),
    p99Ms: rounded(quantile(sorted, 0.99)),
    requests: rounded(requests / times.length),
  };
}

/** Rounds that do not count: the API server here is a young process, and answers faster and faster at first. */
const WARM_UP = 20;

/** Runs the contestants in turn, so that whatever else the machine does hits both. */
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
      requests[one.name] = (requests[one.name] ?? 0) + (await bench.delay(scenario.delayMs));
    }
  }
  const of = (name: string) => numbers(times[name] ?? [], requests[name] ?? 0);
  const ours = of("ours");
  if (times["peer"] === undefined) return { ...scenario, ours };
  const peer = of("peer");
  const ratio = { median: rounded(ours.medianMs / peer.medianMs), p99: rounded(ours.p99Ms / peer.p99Ms) };
  return { ...scenario, ours, peer, ratio };
}

async function costs(bench: Bench, contestants: readonly Contestant[]): Promise<CallCost[]> {
  const found: CallCost[] = [];
  for (const one of contestants) {
    for (const pod of ["meshed", "unmeshed"] as const) {
      const programs = await bench.programs(one, pod);
      const peakMiB = rounded(await bench.peakMemory(one, pod), 1);
      found.push({ name: one.name, pod, ...(programs === undefined ? {} : { programs }), peakMiB });
    }
  }
  return found;
}

function titleOf({ pod, delayMs, parallel }: Scenario): string {
  return `${pod}, API ${delayMs} ms, ${parallel === 1 ? "one" : `${parallel} at once`}`;
}

function print(found: readonly ScenarioResult[], spent: readonly CallCost[]): void {
  const head = ["ADD", "ours median", "p99", "requests", "peer median", "p99", "requests", "ratio median", "p99"];
  const table = new Table({ head, style: { head: [], border: [] } });
  for (const result of found) {
    const { ours, peer, ratio } = result;
    const row = [
      ours.medianMs,
      ours.p99Ms,
      ours.requests,
      peer?.medianMs,
      peer?.p99Ms,
      peer?.requests,
      ratio?.median,
      ratio?.p99,
    ];
    table.push([titleOf(result), ...row.map((value) => `${value ?? "-"}`)]);
  }
  process.stdout.write(`${table.toString()}\n`);
  for (const { name, pod, programs, peakMiB } of spent) {
    process.stdout.write(`${name}, ${pod}: ${programs ?? "?"} programs started, ${peakMiB} MiB at its peak\n`);
  }
}

async function save(found: readonly ScenarioResult[], spent: readonly CallCost[]): Promise<void> {
  const machine = {
    cpu: cpus()[0]?.model ?? "",
    cores: cpus().length,
    kernel: release().split(".").slice(0, 2).join("."),
  };
  const plugin = { date: new Date().toISOString().slice(0, 10), machine, scenarios: found, costs: spent };
  await recordResult("plugin", plugin);
  const bars = found
    .filter(({ parallel }) => parallel === 1)
    .map((result) => {
      const { ours, peer } = result;
      const label = `${result.pod}, API server ${result.delayMs} ms`;
      return { label, ours: ours.medianMs, ...(peer === undefined ? {} : { peer: peer.medianMs }) };
    });
  await writeFile(join(RESULTS, "..", "plugin.svg"), chart("Time of an ADD, median", bars));
}

async function main(): Promise<void> {
  const peer = process.env["LINKERD_CNI_PEER"];
  if (peer === undefined) process.stderr.write("LINKERD_CNI_PEER names no executable: measuring ours alone\n");
  const contestants: Contestant[] = [
    { name: "ours", executable: outputs.plugin, mode: "auto" },
    ...(peer === undefined ? [] : [{ name: "peer" as const, executable: peer, mode: "nft" }]),
  ];
  const directory = await mkdtemp(join(tmpdir(), "bench-"));
  const bench = await Bench.open(directory);
  try {
    const found: ScenarioResult[] = [];
    for (const scenario of scenarios) {
      process.stderr.write(`${titleOf(scenario)}\n`);
      found.push(await run(bench, contestants, scenario));
    }
    const spent = await costs(bench, contestants);
    print(found, spent);
    await save(found, spent);
    await updateReadme();
  } finally {
    bench.close();
    await rm(directory, { recursive: true });
  }
}

main().catch((error: unknown) => {
  process.stderr.write(`bench: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
