/** Programs that exercise the event loop; the first argument names one. Each prints what happened, in order. */
import { host } from "../../../system/engine/host";
import { inChild, ready, run } from "../../../system/engine/loop";

const print = (text: string) => void host.write(1, host.encode(`${text}\n`));
const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const reasonOf = (error: unknown) => `${error}`;
const O_CLOEXEC = 0x80000;

function pipe(): readonly [from: number, to: number] {
  const ends = new Int32Array(2);
  host.pipe(new Uint8Array(ends.buffer), O_CLOEXEC);
  return [ends[0] ?? -1, ends[1] ?? -1];
}

const programs: Readonly<Record<string, (...args: string[]) => Promise<unknown>>> = {
  async args(...args) {
    print(JSON.stringify({ args, environment: host.environment() }));
    return 7;
  },
  async order() {
    setTimeout(() => {
      print("timer 1");
      queueMicrotask(() => print("job of timer 1"));
    }, 2);
    setTimeout((...given: string[]) => print(`timer 2 ${given.join()}`), 2, "with", "arguments");
    clearTimeout(setTimeout(() => print("cleared"), 1));
    clearTimeout(undefined);
    void Promise.resolve().then(() => print("job"));
    print("main");
    await sleep(20);
    print("slept");
  },
  async descriptors(count) {
    const pipes = Array.from({ length: Number(count) }, pipe);
    const all = Promise.all(pipes.map(([from]) => ready(from, "read")));
    for (const [, to] of pipes) {
      await ready(to, "write");
      host.write(to, new Uint8Array(1));
    }
    print(`${(await all).length} ready`);
  },
  async abort() {
    const controller = new AbortController();
    const [from] = pipe();
    const read = ready(from, "read", controller.signal);
    controller.abort();
    await read.catch((error) => print(reasonOf(error)));
    await ready(from, "read", controller.signal).catch((error) => print(reasonOf(error)));
    const late = new AbortController();
    setTimeout(() => late.abort(new Error("late")), 5);
    await ready(from, "read", late.signal).catch((error) => print(reasonOf(error)));
  },
  async child() {
    const begin = host.elapsed();
    const [slow, sum, failed, silent, late] = await Promise.allSettled([
      inChild(() => {
        host.poll(-1, 0, 300);
        return "slow";
      }),
      inChild(() => ({ sum: 1 + 2, large: "x".repeat(200_000).length, text: "ö".repeat(100_000) })),
      inChild(() => {
        throw Object.assign(new Error("ENOENT: no such file"), { code: "ENOENT" });
      }),
      inChild(() => host.exit(3)),
      inChild(() => host.poll(-1, 0, 600_000), { timeoutMs: 50 }),
    ]);
    const told = (one: PromiseSettledResult<unknown>) =>
      one.status === "fulfilled" ? one.value : { code: one.reason.code, message: one.reason.message };
    const { text, ...rest } = told(sum) as { text: string };
    print(JSON.stringify([told(slow), rest, text.length, told(failed), told(silent), told(late)]));
    print(host.elapsed() - begin < 60_000 ? "in time" : "late");
    // 0 while the one that was killed has not ended.
    let left = 0;
    while (left === 0) {
      await sleep(10);
      left = host.wait(-1, new Uint8Array(8), 1);
    }
    print(`children ${left}`);
  },
  async rejection() {
    void Promise.reject(new Error("not handled"));
    await sleep(600_000);
  },
  async handledLate() {
    const failed = Promise.reject(new Error("handled"));
    await Promise.resolve();
    await failed.catch((error) => print(reasonOf(error)));
  },
  async failing() {
    await sleep(1);
    throw new Error("main failed");
  },
  async throwingTimer() {
    setTimeout(() => {
      throw new Error("timer failed");
    }, 1);
    await sleep(600_000);
  },
  async throwingJob() {
    queueMicrotask(() => {
      throw new Error("job failed");
    });
    await sleep(600_000);
  },
  async stuck() {
    await new Promise(() => {});
  },
  async memory(mebibytes, shape) {
    host.limitMemory(Number(mebibytes) * 2 ** 20);
    const held: unknown[] = [];
    const fill: Readonly<Record<string, () => void>> = {
      bytes: () => held.push(new Uint8Array(2 ** 20)),
      objects: () => held.push({ held: [held.length] }),
      text: () => held.push(`${held.length}`.repeat(100_000)),
    };
    for (;;) {
      try {
        fill[shape ?? ""]?.();
      } catch {
        await sleep(0);
      }
    }
  },
  /** Makes much garbage, most of it in cycles. */
  async garbage(mebibytes) {
    host.limitMemory(Number(mebibytes) * 2 ** 20);
    for (let made = 0; made < 200; made++) {
      for (let i = 0; i < 1000; i++) {
        const one: { self?: unknown; bytes: Uint8Array } = { bytes: new Uint8Array(100) };
        one.self = one;
      }
      await sleep(0);
    }
    print("went on");
  },
  async idle() {
    print("idle");
    await sleep(2 ** 31 - 1);
  },
};

const [name = "", ...args] = host.args();
run(async () => {
  const status = await programs[name]?.(...args);
  return typeof status === "number" ? status : 0;
});
