/**
 * Runs histories of a simulated node. `-- --seconds 60` (or `--small 1000 --long 50`) runs new ones, `--seed N` begins
 * with that one, `--replay HISTORY` runs one again and prints what happened.
 */
import { parseArgs } from "node:util";
import { Book, type History, longHistory, run, shortened, smallHistory, told } from "./history";
import { load, type Program } from "./load";

const { values } = parseArgs({
  options: {
    seconds: { type: "string" },
    small: { type: "string" },
    long: { type: "string" },
    seed: { type: "string" },
    replay: { type: "string" },
    log: { type: "boolean" },
    failures: { type: "string" },
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

/** Runs outside of any promise: the processes' promises are waited for in the middle. */
function main(program: Program): number {
  if (values.replay !== undefined) {
    explain(program, JSON.parse(values.replay) as History);
    return 0;
  }
  const book = new Book(program);
  const first = Number(values.seed ?? Date.now() % 1e9);
  const limits = [
    ["small", smallHistory, Number(values.small ?? 0)],
    ["long", longHistory, Number(values.long ?? 0)],
  ] as const;
  let failures = 0;
  const most = Number(values.failures ?? 3);
  const kinds = new Map<string, number>();
  for (const [name, make, count] of limits) {
    const begin = process.cpuUsage();
    let virtual = 0;
    let operations = 0;
    for (let seed = first; seed < first + count; seed++) {
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
  return failures > 0 ? 1 : 0;
}

void load().then((program) => setImmediate(() => process.exit(main(program))));
