/**
 * Feeds the plugin's executable, built with sanitizers, with calls that are made up, and compares every answer with that
 * of the same modules under Node. Arguments: number of calls, or `--seconds` and for how long it calls. SEED as for the
 * tests: a number, or `random`.
 */
import { execFileSync, fork } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "../../build/paths";
import { buildPlugin, buildSanitizedPlugin } from "../../build/programs";
import { type Tally, type Work, work } from "./worker";
import "../support/seed.js";

const WORKERS = 2;
const CALLS = 100_000;
/** Between the seeds of workers: each takes one a batch. */
const STRIDE = 1_000_000;
const PROGRESS_MS = 10_000;

const say = (line: string) => process.stdout.write(`${line}\n`);

/** A worker in a separate process: its tally so far, and the last one. */
function start(what: Work, tell: (tally: Tally) => void): Promise<void> {
  const child = fork(__filename, ["worker", JSON.stringify(what)], { execArgv: process.execArgv });
  child.on("message", (tally: Tally) => tell(tally));
  return new Promise((resolve, reject) => {
    child.on("exit", (status) =>
      status === 0 ? resolve() : reject(new Error(`a worker ended with status ${status}`)),
    );
  });
}

function sum(tallies: readonly Tally[]): Tally {
  const total = (name: Exclude<keyof Tally, "problems">) => tallies.reduce((all, tally) => all + tally[name], 0);
  const problems = tallies.flatMap((tally) => tally.problems);
  return {
    calls: total("calls"),
    refused: total("refused"),
    asked: total("asked"),
    shipped: total("shipped"),
    problems,
  };
}

/** @param count of calls, or seconds in which there are as many as it gets */
async function main(count: number, unit: "calls" | "seconds"): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), "fuzz-"));
  const [executable, shipped] = [join(directory, "sanitized"), join(directory, "linkerd-cni")];
  const library = join(directory, "fork-server.so");
  await buildSanitizedPlugin(executable);
  await buildPlugin(shipped);
  const source = join(root, "test", "fuzz", "fork-server.c");
  execFileSync("gcc", ["-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC", source, "-o", library]);

  const begin = performance.now();
  const tallies: Tally[] = Array.from({ length: WORKERS }, () => sum([]));
  const progress = setInterval(() => {
    const { calls } = sum(tallies);
    const done = unit === "calls" ? `${calls} of ${count} calls` : `${calls} calls`;
    say(`${done}, ${Math.round(calls / ((performance.now() - begin) / 1000))} a second`);
  }, PROGRESS_MS);
  const workers = tallies.map((_, index) => {
    const seed = Number(process.env["SEED"]) + index * STRIDE;
    const budget = unit === "calls" ? { calls: Math.ceil(count / WORKERS) } : { seconds: count };
    return start({ ...budget, seed, executable, library, shipped }, (tally) => {
      tallies[index] = tally;
    });
  });
  try {
    await Promise.all(workers);
  } finally {
    clearInterval(progress);
    rmSync(directory, { recursive: true });
  }
  const { calls, refused, asked, shipped: real, problems } = sum(tallies);
  for (const problem of problems) say(problem);
  say(
    `seed ${process.env["SEED"]}: ${calls} calls under sanitizers in ${Math.round((performance.now() - begin) / 1000)} s, ${refused} of them refused, ${asked} asked the API server; ${real} also by the shipped executable; ${problems.length} wrong`,
  );
  return problems.length === 0 && calls >= (unit === "calls" ? count : 1) ? 0 : 1;
}

async function worker(what: Work): Promise<number> {
  await work(what, (tally) => process.send?.(tally));
  return 0;
}

const [, , first = String(CALLS), second = ""] = process.argv;
const asked = () => (first === "--seconds" ? main(Number(second), "seconds") : main(Number(first), "calls"));
(first === "worker" ? worker(JSON.parse(second)) : asked()).then(
  (status) => process.exit(status),
  (error: Error) => {
    process.stderr.write(`${error.stack}\n`);
    process.exit(1);
  },
);
