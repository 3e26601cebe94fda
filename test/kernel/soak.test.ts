/** Programs with a clock that is a thousand times faster: their memory is the same after very many rounds. */
import type { ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildExecutable } from "../../build/engine";
import { PRODUCT } from "../../build/programs";
import { LOOKUP_SOCKET_NAME } from "../../cni/contract";
import { ApiStub, json } from "../support/api-server";
import { NODE } from "../support/meshed-pod";
import { freePort } from "../support/ports";
import { kilobytes } from "../support/processes";
import { type ProgramName, startProgram } from "../support/program";
import { operatorFlags, repairFlags } from "../support/program-settings";
import { missing, suite } from "../support/requirements";
import { rounds } from "../support/rounds";
import { until } from "../support/until";
import { TestNode } from "./installer-node";

const ROUNDS = rounds(1_000, 20_000);
const LOOKUPS = rounds(3_000, 10_000);
const WATCHES = rounds(400, 20_000);
/** Watches of which the server refuses half. */
const REFUSED = rounds(200, 2_000);
/** Kilobytes of garbage that come and go. */
const GARBAGE_KB = 256;

jest.setTimeout(3_600_000);

suite("a soak", missing({ root: true }), () => {
  let directory: string;
  let executable: string;
  let api: ApiStub;
  let node: TestNode;
  let child: ChildProcess | undefined;

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), "soak-"));
    executable = join(directory, "linkerd-cni");
    const main = (name: string) => join(__dirname, "soak", `${name}.main.ts`);
    const programs = { install: main("install"), repair: main("repair"), multus: main("multus") };
    await buildExecutable(executable, { ...PRODUCT, programs });
    api = await ApiStub.start(() => undefined);
  });
  beforeEach(() => {
    api.answer = json(200, { metadata: { name: "shop", resourceVersion: "1" } });
    node = new TestNode({ "10-k.conflist": '{"name":"k","cniVersion":"1.0.0","plugins":[{"type":"bridge"}]}' });
    writeFileSync(join(node.accountDir, "ca.crt"), api.ca);
  });
  afterEach(() => {
    child?.kill("SIGKILL");
    node.delete();
  });
  afterAll(() => {
    api.close();
    rmSync(directory, { recursive: true });
  });

  function start(name: ProgramName, args: readonly string[] = []): void {
    child = startProgram(name, {
      executable,
      args,
      isSilent: true,
      env: node.environment({
        KUBERNETES_SERVICE_PORT: String(api.port),
        NODE_NAME: NODE,
        POD_NAMESPACE: "linkerd-cni",
        POD_NAME: "linkerd-cni-abcde",
        HEALTH_PORT: "0",
        LINKERD_CNI_REPAIR_CONTROLLER_NODE_NAME: NODE,
        LINKERD_CNI_REPAIR_CONTROLLER_POD_NAME: "linkerd-cni-abcde",
      }),
    });
  }

  /** The program's own memory in kilobytes. */
  function ownMemory(): number {
    return kilobytes(child?.pid, "RssAnon");
  }

  /**
   * Makes rounds, and compares the memory of the last ones with that in the middle: at the beginning it grows to what the
   * program needs. @param round makes at least one, gives the next
   */
  async function flat(what: string, count: number, round: (at: number) => Promise<number>): Promise<void> {
    const [middle, last]: [number[], number[]] = [[], []];
    for (let at = 0; at < count; at = await round(at)) {
      if (at >= count * 0.4 && at < count * 0.5) middle.push(ownMemory());
      if (at >= count * 0.9) last.push(ownMemory());
    }
    const [before, after] = [Math.max(...middle), Math.max(...last)];
    process.stdout.write(`${what}: ${before} kB at most before the middle, ${after} kB at the end\n`);
    expect(after).toBeLessThanOrEqual(before + GARBAGE_KB);
  }

  test("the installer reconciles and renews", async () => {
    start("install");
    await until("the chain", () => node.isChained("10-k.conflist"));
    await flat(`install, ${ROUNDS} renewals and reconciliations`, ROUNDS, async (at) => {
      // Not the file that a container runtime takes: repairs of that one wait longer each time.
      node.write("90-other.conflist", JSON.stringify({ name: `other-${at}`, plugins: [{ type: "ptp" }] }));
      rmSync(join(node.binDir, "linkerd-cni"));
      await until("the plugin", () => existsSync(join(node.binDir, "linkerd-cni")));
      return at + 1;
    });
  });

  test("the installer looks pods up", async () => {
    start("install");
    const socketPath = join(node.root, LOOKUP_SOCKET_NAME);
    const lookUp = () =>
      new Promise<number>((resolve) => {
        const path = "/api/v1/namespaces/shop/pods/cart-1";
        const asked = request({ socketPath, path, agent: false }, (response) => {
          response.resume().on("end", () => resolve(response.statusCode ?? 0));
        });
        asked.on("error", () => resolve(0)).end();
      });
    await until("a look-up", async () => (await lookUp()) === 200);
    // One that is not answered in time, as on a busy machine, is made again.
    const lookedUp = async (at: number) => ((await lookUp()) === 200 ? at + 1 : at);
    await flat(`install, ${LOOKUPS} look-ups`, LOOKUPS, lookedUp);
  });

  const tooMany = json(429, { kind: "Status", reason: "TooManyRequests" });

  /**
   * Lists have some objects; each watch brings an event, then the server ends it.
   * @param isRefused refuses every second one instead
   */
  function endWatches(isRefused: boolean): { readonly count: number } {
    const objects = ["a", "b", "c"].map((name) => ({ metadata: { name, namespace: "shop", uid: name } }));
    const list = json(200, { metadata: { resourceVersion: "1" }, items: objects });
    const seen = { count: 0 };
    api.answer = (request, response) => {
      if (!request.url?.includes("watch=true")) return list(request, response);
      seen.count += 1;
      if (isRefused && seen.count % 2 === 0) return tooMany(request, response);
      const metadata = { ...objects[0]?.metadata, resourceVersion: String(seen.count) };
      response.end(`${JSON.stringify({ type: "MODIFIED", object: { metadata } })}\n`);
    };
    return seen;
  }

  async function rewatch(name: ProgramName, isRefused: boolean): Promise<void> {
    const seen = endWatches(isRefused);
    const [count, what] = isRefused ? [REFUSED, ", half of them refused"] : [WATCHES, ""];
    await flat(`${name}, ${count} watches${what}`, count, async (at) => {
      await until("the next watch", () => seen.count > at);
      return seen.count;
    });
  }

  const flagsOf = {
    repair: async () => repairFlags(await freePort()),
    multus: async () => operatorFlags(node.accountDir, { health: await freePort(), webhook: await freePort() }).flags,
  };
  test.each([
    ["repair", "end", false],
    ["repair", "are refused", true],
    ["multus", "end", false],
    ["multus", "are refused", true],
  ] as const)("%s watches again when watches %s", async (name, _, isRefused) => {
    start(name, await flagsOf[name]());
    await rewatch(name, isRefused);
  });
});
