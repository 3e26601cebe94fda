/** Programs of the image that listen, as the image runs them: thousands of hostile clients keep no probe from its answer. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { OperatorPath } from "../../cni/contract";
import { eventually } from "../../nri/runtime.testing";
import { ApiStub } from "../support/api-server";
import { bundleCrowd, CrowdProcess } from "../support/crowd-process";
import { freePort } from "../support/ports";
import { mebibytes } from "../support/processes";
import { buildPrograms, type ProgramName, startProgram } from "../support/program";
import { emptyCluster, environmentOf, operatorFlags, repairFlags } from "../support/program-settings";
import { rounds } from "../support/rounds";
import { TestNode } from "./installer-node";

const CLIENTS = rounds(2000, 10_000);
/** How many probes in a row fail until it restarts a container. */
const FAILURE_THRESHOLD = 3;
const PROBES = 5;
/** MiB that a program may take at its peak: about 4 are its own, a held connection takes no more than a descriptor. */
const MEMORY = 20;

/** Behaviour of hostile clients. They reconnect as soon as their connection ends. */
interface Flood {
  readonly kind: string;
  /** Bytes that each sends to an HTTP server, and to a TLS server. */
  readonly http: string;
  readonly tls: string;
  readonly isResetting?: boolean;
}

const HANDSHAKE = "\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03";
const GARBAGE = "\x00\xff\r\n\r\n";
const FLOODS: readonly Flood[] = [
  { kind: "are silent", http: "", tls: "" },
  { kind: "send half a request", http: "GET /live HTTP/1.1\r\nx: ", tls: HANDSHAKE },
  { kind: "send requests", http: "GET /live HTTP/1.1\r\n\r\n", tls: HANDSHAKE },
  { kind: "send garbage", http: GARBAGE, tls: GARBAGE },
  { kind: "reset their connections", http: "", tls: "", isResetting: true },
];

const REVIEW = JSON.stringify({
  apiVersion: "admission.k8s.io/v1",
  kind: "AdmissionReview",
  request: {
    uid: "1",
    operation: "CREATE",
    resource: { group: "", version: "v1", resource: "pods" },
    namespace: "shop",
    object: { kind: "Pod", apiVersion: "v1", metadata: { generateName: "cart-" } },
  },
});

/** The status with which a webhook answers a review. */
function review(port: number, ca: string): Promise<number> {
  const headers = { "content-type": "application/json" };
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, ca, path: OperatorPath.webhook, method: "POST", headers, agent: false };
    const outgoing = request(options, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    outgoing.on("error", reject);
    outgoing.end(REVIEW);
  });
}

// No bound on how fast answers are: a busy machine may be slow. How long the slowest took is printed.
jest.setTimeout(600_000);

describe("with thousands of hostile connections", () => {
  let api: ApiStub;
  let node: TestNode;
  let child: ChildProcess | undefined;
  let crowds: readonly CrowdProcess[] = [];
  let slowestMs = 0;

  beforeAll(async () => {
    await buildPrograms();
    api = await ApiStub.start(emptyCluster);
    node = new TestNode({ "10-k.conflist": '{"name":"k","cniVersion":"1.0.0","plugins":[{"type":"bridge"}]}' });
    writeFileSync(join(node.accountDir, "ca.crt"), api.ca);
    await bundleCrowd(crowdScript());
  });
  afterEach(async () => {
    await Promise.all(crowds.map((crowd) => crowd.leave()));
    crowds = [];
    if (child === undefined) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  });
  afterAll(() => {
    api.close();
    node.delete();
  });

  const crowdScript = () => join(node.root, "crowd.js");

  /** @param descriptors soft and hard limit. @default the usual one of a container, which may be raised */
  function start(name: ProgramName, args: readonly string[], port: number, descriptors = "1024:"): void {
    child = startProgram(name, {
      args,
      isSilent: true,
      runner: ["prlimit", `--nofile=${descriptors}`],
      env: { ...environmentOf(node, api, port), PATH: process.env["PATH"] ?? "" },
    });
  }

  /** The status of a probe's answer; that of a later one if the connection is ended, as the kubelet asks again. */
  async function answered(port: number, path: string): Promise<number> {
    const begin = performance.now();
    for (let failures = 0; ; ) {
      try {
        const status = await ask(port, path);
        slowestMs = Math.max(slowestMs, performance.now() - begin);
        return status;
      } catch (error) {
        if (++failures === FAILURE_THRESHOLD) throw error;
      }
    }
  }

  /** The status of a probe's answer. */
  async function ask(port: number, path: string): Promise<number> {
    return (await fetch(`http://127.0.0.1:${port}${path}`, { headers: { connection: "close" } })).status;
  }

  const ready = (port: number, path: string) =>
    eventually(async () => ((await ask(port, path).catch(() => 0)) === 200 ? true : undefined));

  async function surround({ isResetting = false, ...sent }: Flood, ports: Partial<Record<"http" | "tls", number>>) {
    const size = CLIENTS / Object.keys(ports).length;
    const kinds = Object.entries(ports) as ["http" | "tls", number][];
    const open = ([kind, port]: (typeof kinds)[number]) =>
      CrowdProcess.open(crowdScript(), port, sent[kind], { size, isResetting });
    crowds = await Promise.all(kinds.map(open));
  }

  function tell(name: string, { kind }: Flood): void {
    const peak = mebibytes(child?.pid, "VmHWM");
    process.stdout.write(
      `${name}: at most ${peak.toFixed(1)} MiB with ${CLIENTS} clients that ${kind}; the slowest probe took ${slowestMs.toFixed(0)} ms\n`,
    );
    slowestMs = 0;
    expect(peak).toBeLessThanOrEqual(MEMORY);
  }

  test("install answers each probe with 1,024 descriptors and no more", async () => {
    const [silent] = FLOODS as [Flood];
    const port = await freePort();
    start("install", [], port, "1024:1024");
    await ready(port, "/live");
    await surround(silent, { http: port });
    for (let probe = 0; probe < PROBES; probe++) expect(await answered(port, "/live")).toBe(200);
    tell("install, 1,024 descriptors", silent);
  });

  describe.each(FLOODS)("whose clients $kind", (flood) => {
    test.each<[ProgramName, (port: number) => readonly string[]]>([
      ["install", () => []],
      ["repair", repairFlags],
      ["nri", () => []],
    ])("%s answers each probe", async (name, args) => {
      const port = await freePort();
      start(name, args(port), port);
      await ready(port, "/live");
      await surround(flood, { http: port });
      for (let probe = 0; probe < PROBES; probe++) expect(await answered(port, "/live")).toBe(200);
      tell(name, flood);
    });

    test("the Multus operator answers each probe and each review", async () => {
      const [port, webhook] = [await freePort(), await freePort()];
      const { flags, ca } = operatorFlags(node.accountDir, { health: port, webhook });
      start("multus", flags, port);
      await ready(port, "/readyz");
      await surround(flood, { http: port, tls: webhook });
      for (let probe = 0; probe < PROBES; probe++) {
        expect(await answered(port, "/healthz")).toBe(200);
        expect(await review(webhook, ca)).toBe(200);
      }
      tell("the Multus operator", flood);
    });
  });
});
