import { setTimeout as sleep } from "node:timers/promises";
import { systemClock } from "../process/clock";
import { WorkQueue } from "./work-queue";

let stop: AbortController;
let running: Promise<void> | undefined;
const failed: string[] = [];
const slept: number[] = [];

beforeEach(() => {
  stop = new AbortController();
  failed.length = 0;
  slept.length = 0;
});
afterEach(async () => {
  stop.abort();
  await running;
});

/** A queue whose pauses are noted, and take no time. */
function queueOf(work: (key: string) => Promise<number | undefined> | Promise<void>, workers = 4): WorkQueue {
  const clock = {
    ...systemClock,
    random: () => 1,
    sleep: async (ms: number) => {
      slept.push(ms);
      await sleep(1);
    },
  };
  const queue = new WorkQueue(work, {
    clock,
    signal: stop.signal,
    failed: (key, error, attempt) => failed.push(`${key} ${(error as Error).message} ${attempt}`),
  });
  running = queue.run(workers);
  return queue;
}

const empty = async (queue: WorkQueue) => {
  while (queue.depth > 0) await sleep(1);
};

test("each key is worked on by one worker at a time, different ones at once", async () => {
  const active = new Set<string>();
  let most = 0;
  const done: string[] = [];
  const queue = queueOf(async (key) => {
    expect(active.has(key)).toBe(false);
    active.add(key);
    most = Math.max(most, active.size);
    await sleep(2);
    active.delete(key);
    done.push(key);
  });
  for (let round = 0; round < 30; round++) {
    for (const key of ["a", "b", "c", "d", "e", "f"]) queue.add(key);
    await sleep(1);
  }
  await empty(queue);
  expect(most).toBe(4);
  expect(new Set(done)).toEqual(new Set(["a", "b", "c", "d", "e", "f"]));
});

test("what is added many times waits once; what is added during the work comes once more", async () => {
  const seen: string[] = [];
  const queue = queueOf(async (key) => {
    seen.push(key);
    if (seen.length === 1) for (let index = 0; index < 3; index++) queue.add("a");
    await sleep(1);
  }, 1);
  for (let index = 0; index < 3; index++) queue.add("a");
  queue.add("b");
  await empty(queue);
  expect(seen).toEqual(["a", "b", "a"]);
});

test("what fails comes again, ever later, until it succeeds; then it starts from nothing", async () => {
  let attempts = 0;
  const queue = queueOf(async () => {
    attempts += 1;
    if (attempts < 4 || attempts === 5) throw new Error("no");
  });
  queue.add("a");
  await empty(queue);
  queue.add("a");
  await empty(queue);
  expect(attempts).toBe(6);
  expect(failed).toEqual(["a no 1", "a no 2", "a no 3", "a no 1"]);
  expect(slept).toEqual([500, 1_000, 2_000, 500]);
});

test("a failure does not keep other keys waiting", async () => {
  const seen: string[] = [];
  const queue = queueOf(async (key) => {
    seen.push(key);
    if (key === "bad" && seen.length < 6) throw new Error("no");
  }, 1);
  for (const key of ["bad", "a", "b", "c", "d"]) queue.add(key);
  await empty(queue);
  expect(seen.slice(0, 5)).toEqual(["bad", "a", "b", "c", "d"]);
  expect(seen.slice(5)).toEqual(["bad"]);
});

test("an urgent key comes before all others, and also while it is worked on", async () => {
  const seen: string[] = [];
  const queue = queueOf(async (key) => {
    seen.push(key);
    if (key === "a") {
      queue.add("c", { urgent: true });
      queue.add("a", { urgent: true });
    }
    await sleep(1);
    if (seen.length > 6) stop.abort();
  }, 1);
  for (const key of ["a", "b", "c", "d"]) queue.add(key);
  while (seen.length < 4) await sleep(1);
  expect(seen.slice(0, 4)).toEqual(["a", "c", "a", "c"]);
});

test("a key comes again when its reconciliation says so, without a back-off", async () => {
  const seen: string[] = [];
  const queue = queueOf(async (key) => {
    seen.push(key);
    return seen.length < 3 ? 7_000 : undefined;
  });
  queue.add("a");
  await empty(queue);
  expect(seen).toEqual(["a", "a", "a"]);
  expect(slept).toEqual([7_000, 7_000]);
});

test("of several times to come again the earliest counts", () => {
  let now = 0;
  const ended: number[] = [];
  const clock = {
    ...systemClock,
    now: () => now,
    sleep: (ms: number, signal?: AbortSignal) =>
      new Promise<void>((resolve) => {
        signal?.addEventListener("abort", () => {
          ended.push(ms);
          resolve();
        });
      }),
  };
  const queue = new WorkQueue(async () => undefined, { clock, signal: stop.signal, failed: () => undefined });
  expect(queue.addAfter("a", 1_000)).toBe(true);
  now = 500;
  expect(queue.addAfter("a", 600)).toBe(false);
  expect(queue.addAfter("a", 400)).toBe(true);
  expect(ended).toEqual([1_000]);
  expect(queue.depth).toBe(1);
});
