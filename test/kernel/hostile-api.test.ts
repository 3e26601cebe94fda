/**
 * Programs of the image with API servers, and the NRI plugin with an installer, that answer as none should: each stays
 * alive, and goes on afterwards.
 */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { symlinkSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { join } from "node:path";
import { FakeRuntime } from "../../nri/runtime.testing";
import { eventually } from "../../system/eventually.testing";
import { type Answer, ApiStub, json, reset } from "../support/api-server";
import { Node, withRunDir } from "../support/netns";
import { freePort } from "../support/ports";
import { mebibytes } from "../support/processes";
import { buildPrograms, type ProgramName, startProgram } from "../support/program";
import { emptyCluster, environmentOf, operatorFlags, repairFlags } from "../support/program-settings";
import { missing, suite } from "../support/requirements";
import { until } from "../support/until";
import { TestNode } from "./installer-node";

/** MiB that a program may take at its peak: the operator reads three answers of up to 8 MiB at once, and copies each as it grows. */
const MEMORY = 64;
/** How long a program may wait until it asks again. */
const SECONDS = 120;
const KIB = 1024;

/** Writes as fast as the other end reads, until it has closed the connection. */
function pour(socket: Socket, bytes: string): void {
  const more = () => {
    while (socket.write(bytes));
    socket.once("drain", more);
  };
  more();
}

const sending =
  (text: string): Answer =>
  ({ socket }, _) =>
    void socket.write(text);
const pouring =
  (head: string, bytes: string): Answer =>
  ({ socket }) => {
    socket.write(head);
    pour(socket, bytes);
  };

const HEAD = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
const LENGTH = (length: number) => `${HEAD}content-length: ${length}\r\n\r\n`;
const CHUNKED = `${HEAD}transfer-encoding: chunked\r\n\r\n`;

const behaviours: Readonly<Record<string, Answer>> = {
  "is silent": () => undefined,
  "sends half an answer": sending(`${LENGTH(100)}{"items":`),
  "sends an answer byte by byte": ({ socket }) => {
    const drip = setInterval(() => socket.write("H"), 100);
    socket.once("close", () => clearInterval(drip));
  },
  "breaks off in the middle": ({ socket }) => {
    socket.end(`${LENGTH(100)}{"items":`);
  },
  "resets the connection in the middle": (request) => {
    request.socket.write(`${LENGTH(100)}{"items":`, () => reset(request));
  },
  "sends garbage": sending("\0\xff\r\n\r\n"),
  "sends what is not JSON": sending(`${LENGTH(2)}{]`),
  "sends JSON that is too deep": sending(`${LENGTH(1_000_000)}${"[".repeat(1_000_000)}`),
  "sends JSON of another shape": sending(`${LENGTH(14)}{"items":[42]}`),
  "lists what is not an object": sending(`${LENGTH(16)}{"items":[null]}`),
  "announces a chunk of 2^60 bytes": pouring(`${CHUNKED}1000000000000000\r\n`, "x".repeat(KIB)),
  "announces its answer without end": pouring("", "HTTP/1.1 100 Continue\r\n\r\n".repeat(100)),
  "sends header fields without end": pouring(HEAD, "x: y\r\n".repeat(100)),
  "sends a body without end": pouring(`${HEAD}\r\n`, "x".repeat(64 * KIB)),
  "sends a line of a watch without end": (request, response) => {
    if (request.url?.includes("watch=")) pouring(`${HEAD}\r\n`, "x".repeat(64 * KIB))(request, response);
    else emptyCluster(request, response);
  },
};

jest.setTimeout(600_000);

/** A program, and the API server that it has for itself. */
class Case {
  readonly node = new TestNode({
    "10-k.conflist": '{"name":"k","cniVersion":"1.0.0","plugins":[{"type":"bridge"}]}',
  });
  private child!: ChildProcess;
  private probe = "";

  private constructor(
    readonly name: string,
    private readonly api: ApiStub,
  ) {}

  static async start(program: ProgramName, behaviour: string): Promise<Case> {
    const started = new Case(
      `${program}, whose API server ${behaviour}`,
      await ApiStub.start(behaviours[behaviour] ?? emptyCluster),
    );
    await started.start(program);
    return started;
  }

  private async start(program: ProgramName): Promise<void> {
    const [port, webhook] = [await freePort(), await freePort()];
    const { accountDir } = this.node;
    writeFileSync(join(accountDir, "ca.crt"), this.api.ca);
    const args: Partial<Record<ProgramName, readonly string[]>> = {
      repair: repairFlags(port),
      multus: operatorFlags(accountDir, { health: port, webhook }).flags,
    };
    this.probe = `http://127.0.0.1:${port}${program === "multus" ? "/healthz" : "/live"}`;
    this.child = startProgram(program, {
      args: args[program] ?? [],
      isSilent: true,
      env: { ...environmentOf(this.node, this.api, port), PATH: process.env["PATH"] ?? "" },
      // It looks pods up at the installer's socket alone.
      runner: program === "nri" ? withRunDir(this.api.runDir) : [],
    });
  }

  get requests(): number {
    return this.api.requests.length;
  }

  relent(answer: Answer = emptyCluster): void {
    this.api.answer = answer;
    this.api.closeConnections();
  }

  async answers(): Promise<number> {
    return (await fetch(this.probe)).status;
  }

  /** MiB. */
  get peak(): number {
    return mebibytes(this.child.pid, "VmHWM");
  }

  async end(): Promise<void> {
    const ended = once(this.child, "exit");
    const isRunning = this.child.exitCode === null && this.child.signalCode === null;
    this.child.kill("SIGKILL");
    if (isRunning) await ended;
    this.api.close();
    this.node.delete();
  }
}

const PROGRAMS: readonly ProgramName[] = ["install", "repair", "multus"];

describe("programs with hostile API servers", () => {
  let cases: readonly Case[] = [];

  beforeAll(async () => {
    await buildPrograms();
    // All at the same time, each with a server of its own: mostly they wait.
    const named = PROGRAMS.flatMap((program) => Object.keys(behaviours).map((each) => [program, each] as const));
    cases = await Promise.all(named.map(([program, behaviour]) => Case.start(program, behaviour)));
  });
  afterAll(async () => {
    await Promise.all(cases.map((each) => each.end()));
  });

  const probed = () => Promise.all(cases.map(async (each) => `${each.name}: ${await each.answers()}`));
  const alive = () => cases.map(({ name }) => `${name}: 200`);

  test("answer their probes and stay small", async () => {
    await Promise.all(cases.map((each) => until(`two requests of ${each.name}`, () => each.requests >= 2, SECONDS)));
    expect(await probed()).toEqual(alive());
    expect(cases.filter(({ peak }) => peak > MEMORY).map(({ name, peak }) => `${name}: ${peak} MiB`)).toEqual([]);
    const [largest] = [...cases].sort((one, other) => other.peak - one.peak);
    process.stdout.write(`${largest?.name}: ${largest?.peak.toFixed(1)} MiB, the most of all\n`);
  });

  test("ask again once the servers are as they should be", async () => {
    const before = cases.map(({ requests }) => requests);
    for (const each of cases) each.relent();
    const again = (each: Case, at: number) => () => each.requests > (before[at] ?? 0);
    await Promise.all(cases.map((each, at) => until(`another request of ${each.name}`, again(each, at), SECONDS)));
    expect(await probed()).toEqual(alive());
  });
});

/** Milliseconds that a container runtime waits for an NRI plugin, which it then disconnects. */
const RUNTIME_MS = 2000;
/** Milliseconds that the kubelet waits for an answer to a probe, by the chart. */
const PROBE_MS = 3000;
/** Pods of a node whose rules are missing when the plugin starts. */
const RUNNING = 5;
/** These decide nothing without a look-up. */
const ANNOTATIONS = { "linkerd.io/proxy-version": "x" };
/** Answers for any pod, and for its namespace. */
const meshed: Answer = (request, response) => {
  const [, , , , , kind, name] = (request.url ?? "").split("/");
  const spec = { containers: [{ name: "linkerd-proxy" }] };
  const pod = { kind: "Pod", metadata: { name, namespace: "shop", annotations: ANNOTATIONS }, spec };
  json(200, kind === "pods" ? pod : { kind: "Namespace", metadata: { name: "shop" } })(request, response);
};

suite("NRI plugins with hostile installers", missing({ root: true, programs: ["nft", "ip", "unshare"] }), () => {
  let node: Node;

  beforeAll(async () => {
    await buildPrograms();
    node = await Node.open();
  });
  afterAll(() => node.close());

  // They do not watch.
  const named = Object.keys(behaviours).filter((each) => !each.includes("watch"));

  test.each(named)("refuse a pod in time if it %s, and set its rules later", async (behaviour) => {
    const each = await Case.start("nri", behaviour);
    const podOn = (id: string, path: string) => {
      const netns = join(each.node.root, id);
      symlinkSync(path, netns);
      return { id, name: id, addresses: ["10.0.0.1"], annotations: ANNOTATIONS, netns };
    };
    const [path, runs] = [await node.pod(), await node.pod()];
    const pod = podOn("cart", path);
    await eventually(() => each.answers().catch(() => undefined));
    // Look-ups for pods that run already may not keep one waiting that starts.
    const running = [Array.from({ length: RUNNING }, (_, at) => podOn(`runs-${at}`, runs))];
    const runtime = await FakeRuntime.listen(join(each.node.root, "nri.sock"), { running });
    try {
      await runtime.synchronized();
      const begin = performance.now();
      const since = () => performance.now() - begin;
      const [[refusal, took], [probe, probed]] = await Promise.all([
        runtime.run(pod).then((answer) => [answer, since()] as const),
        each.answers().then((answer) => [answer, since()] as const),
      ]);
      expect([refusal, probe]).toEqual([expect.stringContaining("shop/cart"), 200]);
      expect(took).toBeLessThan(RUNTIME_MS);
      expect(probed).toBeLessThan(PROBE_MS);
      expect(each.peak).toBeLessThan(MEMORY);
      expect(node.within(path, "nft", ["list", "ruleset"])).toBe("");

      each.relent(meshed);
      expect(await runtime.run(pod)).toBeUndefined();
      expect(node.within(path, "nft", ["list", "ruleset"])).toContain("redirect to :4143");
      expect(runtime.connections).toBe(1);
    } finally {
      await each.end();
      await runtime.close();
    }
  });
});
