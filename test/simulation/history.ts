/** Histories of a node: each follows from one number, its seed, and fits into a few lines. */
import { below, pick, type Random, randomOf, weighted } from "./clock";
import { type Image, WHO, type Who } from "./daemonset";
import type { Program } from "./load";
import { type Action, inWords, Node, type Setup, type Step } from "./node";
import { AGENTS, type AgentName } from "./owner";
import { READERS, type ReaderName } from "./runtime";

export interface History {
  readonly setup: Setup;
  readonly steps: readonly Step[];
}

/** How a history ended. */
interface Outcome {
  readonly broken: { readonly promise: string; readonly why: string } | undefined;
  readonly node: Node;
}

/** Runs a history. It ends with the first broken promise. */
export function run(program: Program, { setup, steps }: History): Outcome {
  const node = new Node(program, setup);
  for (const step of steps) {
    if (node.broken.length > 0) break;
    node.take(step);
    node.look("at any time", `after: ${inWords(step)}`);
  }
  for (const { process } of node.pods.values()) process.kill();
  return { broken: node.broken[0], node };
}

/** An operation of an installer, and how often it happens from its start to its end. */
type Points = readonly (readonly [operation: string, count: number])[];

/** The operations of an installer on each kind of node, which are learnt from one life of it. */
export class Book {
  private readonly pages = new Map<string, Points>();

  constructor(private readonly program: Program) {}

  points({ runtime, owner }: Pick<Setup, "runtime" | "owner">): Points {
    const key = `${runtime} ${owner}`;
    const known = this.pages.get(key);
    if (known !== undefined) return known;
    const setup = { seed: 1, runtime, owner, separate: false };
    const steps: Step[] = [{ do: "start", who: "A", image: "one" }, { do: "wait", ms: 8_000 }, { do: "uninstall" }];
    const { node } = run(this.program, { setup, steps });
    const points = [...(node.pods.get("A")?.process.operations ?? [])];
    this.pages.set(key, points);
    return points;
  }
}

const RUNTIMES = Object.keys(READERS) as ReaderName[];
const OWNERS = Object.keys(AGENTS) as AgentName[];
const MOODS = ["slow", "silent", "down", 401, 403, 429, 500] as const;
const ANY = /./;
const CHANGING = /^(rename|unlink|write|open|fsync|link|mkdir|exchange) /;
/** Changes of a configuration that runtimes read: the names of the owners' begin with a number. */
const CRITICAL = /^(rename|unlink|exchange) \d/;

/** A place in an installer's life: most are at a change of a file. */
function place(random: Random, points: Points, who: Who): NonNullable<Step["at"]> {
  const kind = weighted(random, [
    [3, CRITICAL],
    [4, CHANGING],
    [3, ANY],
  ]);
  const matching = points.filter(([operation]) => kind.test(operation));
  const [before, count] = pick(random, matching.length > 0 ? matching : points);
  return { who, before, nth: 1 + below(random, Math.min(count, 4)) };
}

function setupOf(random: Random, seed: number, separate: boolean): Setup {
  return { seed, runtime: pick(random, RUNTIMES), owner: pick(random, OWNERS), separate };
}

const start = (who: Who, image: Image = "one"): Step => ({ do: "start", who, image });
const wait = (ms: number): Step => ({ do: "wait", ms });

/** Share of the histories in which processes run in the middle of operations of others. */
const SEPARATE = 0.05;

/** Share of those that wait for limits of half a minute or more. */
const SLOW = 0.1;

/** A short life with one disturbance: about ten seconds. */
export function smallHistory(seed: number, book: Book): History {
  const random = randomOf(seed);
  const setup = setupOf(random, seed, random() < SEPARATE);
  const points = book.points(setup);
  const at = place(random, points, "A");
  const early = wait(below(random, 3_000));
  const end: Step[] = random() < 0.4 ? [{ do: "uninstall" }] : [];
  const calm: Step[] = [wait(6_500), { do: "pod" }, wait(50), ...end];
  const disturbances: readonly (() => readonly Step[])[] = [
    () => [
      { do: "kill", who: "A", at },
      start("A"),
      early,
      { do: "kill", who: "A" },
      start("A", random() < 0.3 ? "two" : "one"),
      ...calm,
    ],
    () => [{ do: "lose power", at }, start("A"), early, { do: "kill", who: "A" }, start("A"), ...calm],
    () => [{ do: "write", way: way(random), at }, start("A"), ...calm],
    () => [
      start("A"),
      early,
      { do: "write", way: way(random) },
      ...(random() < 0.3 ? [{ do: "uninstall" } as const] : [wait(2_100), { do: "pod" } as const, wait(3_000), ...end]),
    ],
    () => [
      start("A"),
      early,
      { do: "API server", is: pick(random, MOODS) },
      wait(below(random, 300)),
      { do: "API server", is: "up" },
      ...calm,
    ],
    () => [
      start("A"),
      wait(3_000),
      start("B", pick(random, ["two", "broken"])),
      early,
      { do: "stop", who: "A" },
      ...calm,
    ],
    () => [start("A"), wait(3_000), { do: "stop", who: "A" }, early, start("B", "two"), ...calm],
    () => [start("A"), wait(3_000), rollout(random), ...calm],
  ];
  const slow: readonly (() => readonly Step[])[] = [
    () => [
      start("A"),
      wait(3_000),
      { do: "API server", is: pick(random, MOODS) },
      { do: "stop", who: "A" },
      wait(1_000),
      { do: "API server", is: "up" },
      wait(30_000),
    ],
    () => [start("A"), wait(3_000), { do: "API server", is: "silent" }, { do: "stop", who: "A" }, wait(31_000)],
    () => [
      start("A"),
      wait(3_000),
      { do: "runtime", is: pick(random, RUNTIMES) },
      wait(76_000),
      { do: "pod" },
      wait(50),
    ],
    () => [{ do: "API server", is: pick(random, ["silent", "down", 500]) }, start("A"), wait(7_000), ...end],
    () => [
      { do: "API server", is: pick(random, [401, 403]) },
      start("A"),
      wait(below(random, 5_000)),
      { do: "API server", is: "up" },
      wait(16_500),
    ],
    () => [
      start("A"),
      wait(3_000),
      { do: "kill", who: "A" },
      start("B", "two"),
      { do: "write", way: way(random) },
      wait(16_500),
      ...end,
    ],
    () => [start("A"), wait(3_000), { do: "fight", ms: 20_000 }, wait(51_000), ...end],
    () => [start("A"), wait(3_000), rollout(random, ["once", "broken"]), wait(20_000), { do: "pod" }, wait(50), ...end],
    () => [start("A"), early, { do: "replace net.d" }, wait(41_000), { do: "pod" }, wait(50), ...end],
  ];
  const apart = () => [
    { do: "start", who: "B", image: "two", at } as const,
    { ...wait(below(random, 2_000)), at },
    start("A"),
    ...calm,
  ];
  return { setup, steps: setup.separate ? apart() : pick(random, random() < SLOW ? slow : disturbances)() };
}

const rollout = (random: Random, to: readonly Image[] = ["one", "two"]): Step => ({
  do: "rollout",
  to: pick(random, to),
  by: pick(random, ["surge", "unavailable"]),
});

const way = (random: Random) => (random() < 0.5 ? "in place" : "by rename");

/** Two versions whose plugin runs once could take the node from each other for long, and from a good one. */
const IMAGES: Readonly<Record<Who, readonly Image[]>> = {
  A: ["one", "one", "two", "broken"],
  B: ["one", "two", "once", "broken"],
  C: ["one", "one", "two", "broken"],
};

/** One step of a long history. */
function anyStep(random: Random, points: Points, separate: boolean): Step {
  const who = pick(random, WHO);
  const at = random() < 0.5 ? { at: place(random, points, who) } : {};
  const action = weighted<() => Action>(random, [
    [46, () => ({ do: "wait", ms: pick(random, [1, 5, 20, 50, 500, 1_500]) })],
    [14, () => ({ do: "start", who, image: pick(random, IMAGES[who]) })],
    [12, () => ({ do: "kill", who })],
    [4, () => ({ do: "stop", who })],
    [8, () => ({ do: "write", way: way(random) })],
    [5, () => ({ do: "API server", is: random() < 0.6 ? "up" : pick(random, MOODS) })],
    [6, () => ({ do: "pod" })],
    [2, () => ({ do: "runtime", is: pick(random, RUNTIMES) })],
    [1, () => rollout(random, ["one", "two", "broken"])],
    [1, () => ({ do: pick(random, ["lose power", "boot", "replace net.d"]) })],
    [1, () => ({ do: pick(random, ["freeze", "thaw", "thaw"]), who })],
    [1, () => ({ do: "disk", is: pick(random, ["full", "read-only", "fine", "fine"]) })],
  ])();
  // Others can run in the middle of an operation only in realms of their own.
  const isPlaced = ["kill", "write", "lose power"].includes(action.do) || (separate && action.do === "wait");
  return isPlaced ? { ...action, ...at } : action;
}

const LONG = 100;

/** A hundred steps, with everything. */
export function longHistory(seed: number, book: Book): History {
  const random = randomOf(seed);
  const setup = setupOf(random, seed, random() < SEPARATE);
  const points = book.points(setup);
  const steps = Array.from({ length: LONG }, () => anyStep(random, points, setup.separate));
  return { setup, steps: [start("A"), ...steps, { do: "settle" }, { do: "pod" }, wait(50), { do: "uninstall" }] };
}

/** Leaves out steps as long as the same promise is broken. */
export function shortened(program: Program, history: History, promise: string): History {
  const breaks = (steps: readonly Step[]) => run(program, { ...history, steps }).broken?.promise === promise;
  let { steps } = history;
  for (let size = Math.ceil(steps.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = steps.length - size; at >= 0; at -= size) {
      const fewer = [...steps.slice(0, at), ...steps.slice(at + size)];
      if (breaks(fewer)) steps = fewer;
    }
  }
  return { ...history, steps };
}

export function told({ setup, steps }: History): string {
  const head = `${setup.owner} writes the configuration, ${setup.runtime} reads it`;
  return [head, ...steps.map((step, at) => `${String(at + 1).padStart(3)}. ${inWords(step)}`)].join("\n");
}
