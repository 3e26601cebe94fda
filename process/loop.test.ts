import { Loop } from "./loop";

/** A clock whose pauses last until they are ended. */
function clockOf(pauses: number[]) {
  return {
    sleep: (ms: number, signal?: AbortSignal) =>
      new Promise<void>((resolve) => {
        pauses.push(ms);
        if (signal?.aborted === true) resolve();
        else signal?.addEventListener("abort", () => resolve());
      }),
  };
}

const ticks = async () => {
  for (let tick = 0; tick < 20; tick += 1) await Promise.resolve();
};

test("a loop pauses as its step says, and is woken early", async () => {
  const pauses: number[] = [];
  const stop = new AbortController();
  const next = [0, 0, 7, Number.POSITIVE_INFINITY, 9];
  const loop = new Loop(async () => next.shift() ?? 0, { clock: clockOf(pauses), signal: stop.signal });
  const running = loop.run();
  await ticks();
  expect([pauses, next.length]).toEqual([[7], 2]);
  loop.wake();
  await ticks();
  expect([pauses, next.length]).toEqual([[7, 2 ** 31 - 1], 1]);
  loop.wake();
  await ticks();
  expect(next).toEqual([]);
  stop.abort();
  await running;
});

test("a loop that is woken during a step runs it again at once", async () => {
  const pauses: number[] = [];
  const stop = new AbortController();
  let steps = 0;
  const loop = new Loop(
    async () => {
      steps += 1;
      if (steps === 1) loop.wake();
      return 1_000;
    },
    { clock: clockOf(pauses), signal: stop.signal },
  );
  const running = loop.run();
  await ticks();
  expect(steps).toBe(2);
  stop.abort();
  await running;
  expect(steps).toBe(2);
});

test("a loop ends with the error of its step", async () => {
  const loop = new Loop(() => Promise.reject(new Error("no")), {
    clock: clockOf([]),
    signal: new AbortController().signal,
  });
  await expect(loop.run()).rejects.toThrow("no");
});
