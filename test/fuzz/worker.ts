/** One of the fuzzing processes: generates calls, and compares the executable's answers with Node's. */
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { LOOKUP_SOCKET_NAME } from "../../cni/contract";
import { Node } from "../support/netns";
import { calls, type MadeUp, type Surroundings } from "./calls";
import { agrees, expected, type Machine } from "./expected";
import { type Answer, ForkServer } from "./fork-server";

export interface Work {
  /** How many calls it makes. @default any number */
  readonly calls?: number;
  /** After how long it makes no other call. @default never */
  readonly seconds?: number;
  readonly seed: number;
  /** The sanitized executable and the library that is preloaded into it. */
  readonly executable: string;
  readonly library: string;
  /** The one that is shipped: each {@link REAL_STARTS}th call is made by it, too. */
  readonly shipped: string;
}

export interface Tally {
  calls: number;
  /** Calls that failed, as they had to. */
  refused: number;
  /** Calls that asked the installer. */
  asked: number;
  /** Calls that were made by real starts of the shipped executable, too. */
  shipped: number;
  /** Calls with a wrong outcome, told in full. */
  readonly problems: string[];
}

const BATCH = 250;
/** A new fork server: more than one start is tried. */
const BATCHES_A_SERVER = 8;
const REAL_STARTS = 20;
const ENOUGH_PROBLEMS = 20;

/** Must be true of every call, whatever Node answers. */
function problemOf({ status, stdout, stderr }: Answer): string | undefined {
  if (status === null) return "a signal ended it";
  if (status !== 0 && status !== 1) return `status ${status}`;
  if (/Sanitizer|runtime error:/.test(stderr)) return "a sanitizer's report";
  try {
    const document = stdout === "" ? undefined : JSON.parse(stdout);
    if (status === 0) return undefined;
    const isError = typeof document?.code === "number" && typeof document.msg === "string";
    if (!isError) return "no error document";
    return document.code === 102 ? "a defect" : undefined;
  } catch {
    return "standard output is not one JSON document";
  }
}

function difference(wanted: Answer, found: Answer): string | undefined {
  const problem = problemOf(found);
  if (problem !== undefined) return problem;
  if (wanted.status !== found.status) return "another status than under Node";
  if (!agrees(wanted.stdout, found.stdout)) return "another standard output than under Node";
  return agrees(wanted.stderr, found.stderr) ? undefined : "another standard error than under Node";
}

const legible = ({ env, stdin, response }: MadeUp) => ({
  env: Object.fromEntries(Object.entries(env).map(([name, value]) => [name, value.toString("latin1")])),
  stdin: stdin.toString("latin1"),
  response,
});

export async function work(what: Work, tell: (tally: Tally) => void) {
  const { calls: count = Number.POSITIVE_INFINITY, seconds = Number.POSITIVE_INFINITY } = what;
  const { seed, executable, library, shipped } = what;
  const end = performance.now() + seconds * 1000;
  const directory = mkdtempSync(join(tmpdir(), "fuzz-"));
  let response = "";
  const installer = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => socket.end(response));
  });
  await new Promise<void>((resolve) => installer.listen(join(directory, LOOKUP_SOCKET_NAME), resolve));
  const node = await Node.open();
  const [used, untouched] = [await node.pod(), await node.pod()];
  const surroundings: Surroundings = { used, untouched, runDir: directory };
  const tally: Tally = { calls: 0, refused: 0, asked: 0, shipped: 0, problems: [] };
  let server = new ForkServer(executable, library, directory);

  const tryOne = async (call: MadeUp): Promise<void> => {
    response = call.response;
    const machine: Machine = { namespaces: [used, untouched], response };
    const wanted = expected(call, machine);
    const answers = [await server.call(call)];
    if (tally.calls % REAL_STARTS === 0) answers.push(await server.call(call, shipped));
    tally.calls += 1;
    tally.shipped += answers.length - 1;
    tally.refused += wanted.status === 1 ? 1 : 0;
    tally.asked += wanted.requests > 0 ? 1 : 0;
    for (const [at, found] of answers.entries()) {
      const problem = difference(wanted, found);
      const by = at === 0 ? "sanitized" : "shipped";
      if (problem !== undefined)
        tally.problems.push(JSON.stringify({ problem, by, ...legible(call), wanted, found }, null, 1));
    }
  };

  const goesOn = () => tally.calls < count && performance.now() < end && tally.problems.length < ENOUGH_PROBLEMS;
  for (let batch = 0; goesOn(); batch++) {
    if (batch > 0 && batch % BATCHES_A_SERVER === 0) {
      server.close();
      server = new ForkServer(executable, library, directory);
    }
    const numRuns = Math.min(BATCH, count - tally.calls);
    for (const call of fc.sample(calls(surroundings), { numRuns, seed: seed + batch })) {
      if (performance.now() < end) await tryOne(call);
    }
    tell(tally);
  }
  server.close();
  installer.close();
  node.close();
  rmSync(directory, { recursive: true });
  return tally;
}
