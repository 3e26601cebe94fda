import { execFile, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";
import { root } from "../../build/paths";
import { suite } from "../support/requirements";
import { until } from "../support/until";
import { addedSince, hostState } from "./host";
import { Machine } from "./machine";
import { paths } from "./paths";
import { lacks } from "./suite";

const execute = promisify(execFile);
const CLUSTER = ["run", "--silent", "cluster", "--"];

/** Runs a command to its end, even if it fails. @returns its exit code and all its output */
async function run(program: string, ...args: string[]): Promise<{ code: number; said: string }> {
  const { stdout, stderr, code } = await execute(program, args, { cwd: root, env: environment() }).then(
    (output) => ({ ...output, code: 0 }),
    (error: { stdout: string; stderr: string; code: number }) => error,
  );
  return { code, said: stdout + stderr };
}

/** Without the variables that jest sets for its workers. */
function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("JEST")));
}

const cluster = (...args: string[]) => run("npm", ...CLUSTER, ...args);

/** Runs a command that must succeed. @returns its output */
async function succeeding(...args: string[]): Promise<string> {
  const { code, said } = await cluster(...args);
  if (code !== 0) throw new Error(said);
  return said;
}

/** Starts a cluster, and interrupts the start as a terminal does. @returns its output */
async function interrupted(moment: (said: string) => boolean): Promise<string> {
  const up = spawn("npm", [...CLUSTER, "up"], { cwd: root, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [up.stdout, up.stderr]) {
    stream.on("data", (chunk: Buffer) => {
      said += chunk;
    });
  }
  const closed = new Promise((resolve) => up.once("close", resolve));
  await until("the moment to interrupt", async () => moment(said));
  process.kill(-(up.pid as number), "SIGINT");
  await closed;
  return said;
}

suite("npm run cluster", lacks(), () => {
  let host: Record<string, string[]>;
  jest.setTimeout(240_000);

  beforeAll(async () => {
    if ((await Machine.find()) !== undefined) throw new Error("a cluster runs here: npm run cluster -- down");
    host = await hostState();
    // The first time this builds Kubernetes.
    await succeeding("up");
  }, 1_800_000);
  // By now nothing runs that these tests have not started.
  afterAll(() => (host === undefined ? undefined : cluster("down")));

  test("status names every daemon, and the node", async () => {
    const said = await succeeding("status");
    expect(said.match(/pid \d+/g)).toHaveLength(6);
    expect(said).toMatch(/node\/node +Ready/);
  });

  test("up reuses the running cluster, unless another containerd is requested", async () => {
    const machine = await Machine.find();
    await succeeding("up");
    expect(await Machine.find()).toEqual(machine);
    const other = await cluster("up", "--containerd=2");
    expect(other.code).not.toBe(0);
    expect(other.said).toContain("a cluster runs here with containerd 1; end it first: npm run cluster -- down");
  });

  test("a suite does not stop a cluster that it has not started", async () => {
    const { code, said } = await run("npx", "jest", "test/cluster/dry-run.test.ts", "--selectProjects", "cluster");
    expect(code).not.toBe(0);
    expect(said).toContain("a cluster runs here: npm run cluster -- down");
    expect((await succeeding("status")).match(/pid \d+/g)).toHaveLength(6);
  });

  test("up refuses an incomplete cluster", async () => {
    await (await Machine.find())?.endDaemon("kubelet");
    const { code, said } = await cluster("up");
    expect(code).not.toBe(0);
    expect(said).toContain("a cluster runs here without kubelet; end it first: npm run cluster -- down");
  });

  test("down leaves no trace on the host", async () => {
    await succeeding("down");
    expect(await addedSince(host)).toEqual([]);
    expect(existsSync(paths.state)).toBe(false);
  });

  test("after that, a cluster comes up again, and leaves no trace either", async () => {
    const start = Date.now();
    await succeeding("up");
    process.stdout.write(`up again within ${((Date.now() - start) / 1000).toFixed(1)} s\n`);
    await succeeding("down");
    expect(await addedSince(host)).toEqual([]);
  });

  test.each([
    ["while it is put together", () => existsSync(paths.state)],
    ["while its daemons start", (said: string) => said.includes("✓ namespaces")],
    ["while its node joins", (said: string) => said.includes("✓ control plane")],
  ])("a cluster that is interrupted %s is ended", async (_, moment) => {
    expect(await interrupted(moment)).toContain("interrupted: what had begun is ended");
    expect(await Machine.find()).toBeUndefined();
    expect(await addedSince(host)).toEqual([]);
    expect(existsSync(paths.state)).toBe(false);
  });
});
