/** Programs on the engine, built into an executable: the event loop, and what it has of Node. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildExecutable } from "../../build/engine";
import { root } from "../../build/paths";
import { sanitized } from "../support/host";
import { cases } from "../support/programs/cases";

jest.setTimeout(600_000);

let directory: string;
let executable: string;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "programs-"));
  executable = join(directory, "linkerd-cni");
  const [steps, folder] = [join(root, "test", "support", "host-steps"), join(root, "test", "support", "programs")];
  const programs = Object.fromEntries(["loop", "node", "stop"].map((name) => [name, join(folder, `${name}.ts`)]));
  await buildExecutable(executable, {
    main: join(steps, "main.ts"),
    scripts: join(steps, "scripts"),
    programs,
    sanitized,
  });
});
afterAll(() => rm(directory, { recursive: true }));

const children = new Set<ChildProcess>();
afterEach(() => {
  for (const child of children) child.kill("SIGKILL");
  children.clear();
});

/** A program that was started, and what it has printed so far. */
function started(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const child = spawn(executable, args, { env, stdio: ["ignore", "pipe", "pipe"] });
  children.add(child);
  const printed = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    child[name].setEncoding("utf8").on("data", (text: string) => {
      printed[name] += text;
    });
  const ended = once(child, "close").then(([status]) => ({ status, ...printed }));
  return { child, ended };
}

const end = (args: readonly string[], env = {}) => started(args, env).ended;
const loop = (...args: readonly string[]) => end(["loop", ...args]);
const failure = (message: string) => ({ status: 1, stdout: "", stderr: `linkerd-cni: error: ${message}\n` });

describe("the program", () => {
  it("is chosen by the first argument, and gets the others and the environment", async () => {
    const { status, stdout } = await end(["loop", "args", "a", "grüße", ""], { ONE: "1", TWO: "=2=" });
    expect(JSON.parse(stdout)).toEqual({ args: ["a", "grüße", ""], environment: ["ONE=1", "TWO==2="] });
    expect(status).toBe(7);
  });

  it("is refused if no program has its name", async () => {
    const known = "known are loop, node, stop";
    expect(await end(["install"])).toEqual({
      status: 2,
      stdout: "",
      stderr: `linkerd-cni: error: no program "install"; ${known}\n`,
    });
  });

  it("is the plugin if a container runtime calls, whatever the arguments", async () => {
    const { status, stdout } = await end(["loop", "order"], { CNI_COMMAND: "ADD" });
    expect([status, JSON.parse(stdout).code]).toEqual([1, 102]);
  });
});

describe("the loop", () => {
  it("runs jobs before timers, and timers in the order in which they come due", async () => {
    const lines = ["main", "job", "timer 1", "job of timer 1", "timer 2 with,arguments", "slept"];
    expect(await loop("order")).toEqual({ status: 0, stdout: `${lines.join("\n")}\n`, stderr: "" });
  });

  it("waits for more descriptors than one poll of the plugin takes", async () => {
    expect(await loop("descriptors", "300")).toEqual({ status: 0, stdout: "300 ready\n", stderr: "" });
  });

  it("ends waiting by a signal", async () => {
    const lines = ["AbortError: This operation was aborted", "AbortError: This operation was aborted", "Error: late"];
    expect(await loop("abort")).toEqual({ status: 0, stdout: `${lines.join("\n")}\n`, stderr: "" });
  });

  it("continues while a child works, receives its result or error, and ends it at its time limit", async () => {
    const { status, stdout, stderr } = await loop("child");
    const [results, time, children] = stdout.split("\n");
    expect([status, stderr, time, children]).toEqual([0, "", "in time", "children -10"]);
    expect(JSON.parse(results ?? "")).toEqual([
      "slow",
      { sum: 3, large: 200_000 },
      100_000,
      { code: "ENOENT", message: "ENOENT: no such file" },
      { message: "a child process ended without an answer" },
      { code: "ETIMEDOUT", message: "ETIMEDOUT: no answer within 50 ms" },
    ]);
  });

  it.each([
    ["rejection", "Error: not handled"],
    ["failing", "Error: main failed"],
    ["throwingTimer", "Error: timer failed"],
    ["throwingJob", "Error: job failed"],
    ["stuck", "Error: the program waits for nothing and has not ended"],
  ])("ends with a message: %s", async (name, message) => {
    expect(await loop(name)).toEqual(failure(message));
  });

  it("lets a rejection be handled in the same turn", async () => {
    expect(await loop("handledLate")).toEqual({ status: 0, stdout: "Error: handled\n", stderr: "" });
  });

  it.each(["bytes", "objects", "text"])(
    "ends a program that fills its memory with %s and catches errors",
    async (shape) => {
      expect(await loop("memory", "8", shape)).toEqual(failure("out of memory: this program may take 8 MiB"));
    },
  );

  it("collects what only refers to itself", async () => {
    expect(await loop("garbage", "8")).toEqual({ status: 0, stdout: "went on\n", stderr: "" });
  });
});

describe("signals", () => {
  it.each(["SIGTERM", "SIGINT"] as const)("%s is for the program, each time", async (signal) => {
    const { child, ended } = started(["stop", "a"], { NAME: "value" });
    await once(child.stdout, "data");
    child.kill(signal);
    await once(child.stdout, "data");
    child.kill(signal);
    const { status, stdout, stderr } = await ended;
    expect(stdout).toBe('{"args":["a"],"name":"value"}\nstop 1\nstop 2\n');
    expect([status, stderr]).toEqual([4, ""]);
  });

  it("a program without a handler is ended by them", async () => {
    const { child } = started(["loop", "idle"]);
    const ended = once(child, "exit");
    await once(child.stdout, "data");
    child.kill("SIGTERM");
    expect(await ended).toEqual([null, "SIGTERM"]);
  });
});

describe("modules have the same results as Node's", () => {
  it.each(Object.keys(cases))("%s", async (name) => {
    const [here, there] = [join(directory, `${name}-node`), join(directory, `${name}-engine`)];
    await mkdir(here);
    await mkdir(there);
    const { status, stdout, stderr } = await end(["node", name, there]);
    expect([status, stderr]).toEqual([0, ""]);
    expect(JSON.parse(stdout)).toEqual(JSON.parse(JSON.stringify(await cases[name]?.(here))));
  });
});
