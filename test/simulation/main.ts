/**
 * Runs histories of a simulated node. `-- --seconds 60` (or `--small 1000 --long 50`) runs new ones, `--seed N` begins
 * with that one, `--replay HISTORY` runs one again and prints what happened.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { root } from "../../build/paths";
import { FAULTS } from "./faults";
import { Book, type History, longHistory, run, shortened, smallHistory, told } from "./history";
import { end, load, type Program } from "./load";

const { values } = parseArgs({
  options: {
    seconds: { type: "string" },
    small: { type: "string" },
    long: { type: "string" },
    seed: { type: "string" },
    replay: { type: "string" },
    log: { type: "boolean" },
    failures: { type: "string" },
    faults: { type: "string" },
  },
});

const say = (line: string) => process.stdout.write(`${line}\n`);
/** A killed installer may leave promises that nothing waits for. */
process.on("unhandledRejection", () => undefined);
Error.stackTraceLimit = 0;

function explain(program: Program, history: History): void {
  const { broken, node } = run(program, history);
  say(told(history));
  say("");
  for (const line of node.log) say(line);
  if (values.log === true)
    for (const { process: each } of node.pods.values()) say(`-- ${each.name}\n${each.lines.join("")}`);
  say(broken === undefined ? "every promise holds" : `broken: ${broken.promise}: ${broken.why}`);
}

function fails(program: Program, seed: number, history: History, promise: string): void {
  const short = shortened(program, history, promise);
  say(`seed ${seed}: broken: ${promise}`);
  explain(program, short);
  say(`npm run simulate -- --log --replay '${JSON.stringify(short)}'\n`);
}

const RECORD = join(root, "test/simulation/faults.json");
/** Histories that once broke a promise, by what it was, in the form that `--replay` takes. */
const REGRESSIONS = join(root, "test/simulation/regressions.json");
/** How many histories are tried for each planted fault. */
const TRIED = { small: 3000, long: 100 };

interface Recorded {
  /** How many were tried to find it. */
  readonly histories: number;
  readonly promise: string;
  /** In the form that `--replay` takes. */
  readonly replay: string;
}

/** Searches a planted fault, with small histories first. */
function search(program: Program, product: Program, book: Book): Recorded | undefined {
  for (const [make, count] of [
    [smallHistory, TRIED.small],
    [longHistory, TRIED.long],
  ] as const)
    for (let seed = 1; seed <= count; seed++) {
      const history = make(seed, book);
      const { broken } = run(program, history);
      // A fault that the product has itself shows nothing.
      if (broken === undefined || run(product, history).broken !== undefined) continue;
      const histories = make === smallHistory ? seed : TRIED.small + seed;
      const isShown = (short: History) => run(product, short).broken === undefined;
      const short = shortened(program, history, broken.promise);
      return { histories, promise: broken.promise, replay: JSON.stringify(isShown(short) ? short : history) };
    }
  return undefined;
}

const recorded = (): Readonly<Record<string, Recorded>> => JSON.parse(readFileSync(RECORD, "utf8"));

/** Searches planted faults, and records the histories that show them. @returns how many with a known one it misses */
async function searchFaults(product: Program, book: Book, wanted: (name: string) => boolean): Promise<number> {
  let missed = 0;
  for (const [name, fault] of Object.entries(FAULTS).filter(([each]) => wanted(each))) {
    const program = await load(fault);
    await outside(() => {
      const found = search(program, product, book);
      say(`${name}: ${found === undefined ? "NOT FOUND" : `history ${found.histories}: ${found.promise}`}`);
      if (found === undefined) missed += name in recorded() ? 1 : 0;
      else writeFileSync(RECORD, `${JSON.stringify({ ...recorded(), [name]: found }, null, 2)}\n`);
    });
  }
  return missed;
}

/** Whether each planted fault is still noticed by its history, and the product breaks no promise there. */
async function replayFaults(product: Program): Promise<number> {
  let failures = 0;
  let count = 0;
  for (const [name, fault] of Object.entries(FAULTS)) {
    const known = recorded()[name];
    if (known === undefined) continue;
    count++;
    const program = await load(fault);
    await outside(() => {
      const [sick, sound] = [program, product].map((each) => run(each, JSON.parse(known.replay)).broken?.promise);
      if (sick === known.promise && sound === undefined) return;
      failures++;
      say(`planted fault: ${name}: breaks ${sick}; without it: ${sound}`);
    });
  }
  say(`${count} of ${Object.keys(FAULTS).length} planted faults replayed, ${failures} not noticed`);
  return failures;
}

/** Whether histories that once broke a promise keep all promises now. @returns how many do not */
function replayRegressions(program: Program): number {
  const rows: Readonly<Record<string, string>> = JSON.parse(readFileSync(REGRESSIONS, "utf8"));
  const broken = Object.entries(rows).flatMap(([what, replay]) => {
    const { promise, why } = run(program, JSON.parse(replay)).broken ?? {};
    return promise === undefined ? [] : [`regression: ${what}: ${promise}: ${why}`];
  });
  for (const line of broken) say(line);
  say(`${Object.keys(rows).length} regressions replayed`);
  return broken.length;
}

/** Runs something outside of any promise: those of the processes are waited for in the middle. */
const outside = (work: () => void): Promise<void> =>
  new Promise((resolve, reject) =>
    setImmediate(() => {
      try {
        work();
        resolve();
      } catch (error) {
        reject(error);
      }
    }),
  );

/** New histories. @returns how many broke a promise */
function explore(program: Program, book: Book): number {
  if (values.replay !== undefined) {
    explain(program, JSON.parse(values.replay) as History);
    return 0;
  }
  const first = Number(values.seed ?? Date.now() % 1e9);
  const forever = values.seconds === undefined ? 0 : Number.POSITIVE_INFINITY;
  const limits = [
    ["small", smallHistory, Number(values.small ?? forever)],
    ["long", longHistory, Number(values.long ?? forever)],
  ] as const;
  const share = (Number(values.seconds ?? 0) * 1000) / limits.length;
  let failures = 0;
  const most = Number(values.failures ?? 3);
  const kinds = new Map<string, number>();
  for (const [name, make, limit] of limits) {
    const begin = process.cpuUsage();
    const until = performance.now() + share;
    let count = 0;
    let virtual = 0;
    let operations = 0;
    for (; count < limit && (forever === 0 || performance.now() < until); count++) {
      const seed = first + count;
      const history = make(seed, book);
      const { broken, node } = run(program, history);
      virtual += node.clock.now;
      for (const { process: each } of node.pods.values()) for (const n of each.operations.values()) operations += n;
      if (broken === undefined) continue;
      kinds.set(broken.promise, (kinds.get(broken.promise) ?? 0) + 1);
      if (++failures <= most) fails(program, seed, history, broken.promise);
    }
    const used = process.cpuUsage(begin);
    const seconds = (used.user + used.system) / 1e6;
    if (count > 0)
      say(
        `${count} ${name} histories from seed ${first} in ${seconds.toFixed(1)} s of one core, ${(count / seconds).toFixed(0)} a second; ${(virtual / count / 1000).toFixed(1)} virtual seconds, ${Math.round(operations / count)} operations each`,
      );
  }
  for (const [kind, count] of kinds) say(`${count} times broken: ${kind}`);
  return failures;
}

async function main(): Promise<number> {
  const program = await load();
  const book = new Book(program);
  const { faults } = values;
  let failures = 0;
  if (faults === "replay") failures += await replayFaults(program);
  else if (faults !== undefined) {
    const known = recorded();
    const isWanted = (name: string) => faults === "all" || (faults === "missing" ? !(name in known) : name === faults);
    failures += await searchFaults(program, book, isWanted);
  }
  await outside(() => {
    if (values.replay === undefined) failures += replayRegressions(program);
    failures += explore(program, book);
  });
  await end();
  return failures === 0 ? 0 : 1;
}

main().then(
  (status) => process.exit(status),
  (error) => {
    say(String(error));
    process.exit(1);
  },
);
