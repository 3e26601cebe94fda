/** Programs of the image that listen, as the image runs them: thousands of hostile clients keep no probe from its answer. */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { Annotation, NetworkDefinition, OperatorPath } from "../../cni/contract";
import { eventually } from "../../system/eventually.testing";
import { reviewOf } from "../support/admission-review";
import { ApiStub } from "../support/api-server";
import { bundleCrowd, CrowdProcess } from "../support/crowd-process";
import { get } from "../support/http";
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
/** MiB that a program may take at its peak: 4 are its own, 20 KiB each of 256 connections, 80 each of 512 with TLS. */
const MEMORY = 48;

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

const KIB = 1024;
const HEAD = `POST ${OperatorPath.webhook} HTTP/1.1\r\nhost: webhook\r\ncontent-type: application/json\r\n`;
/**
 * Clients of the webhook that finish the TLS handshake: a handshake costs both sides a millisecond or two, and twice as
 * many as the server keeps at most are enough to be closed and come again all the time.
 */
const TLS_CLIENTS = rounds(2000, 4000);
/** MiB that the operator may take at its peak with them: 48 more, since bodies of 16 MiB grow by copies. */
const TLS_MEMORY = 112;
/** Reviews while they come: in each round the connections that have waited longest are others. */
const REVIEWS = rounds(10, 30);
/** Handshakes that they begin at once. */
const AT_ONCE = rounds(64, 1000);
/** Milliseconds after which an API server gives up a review by default. */
const REVIEW_MS = 10_000;
const BODY_FLOODS: readonly Flood[] = [
  { kind: "send half a body", http: "", tls: `${HEAD}content-length: 2\r\n\r\n{` },
  {
    kind: "send a part of a large body",
    http: "",
    tls: `${HEAD}content-length: ${7 * KIB * KIB}\r\n\r\n${" ".repeat(64 * KIB)}`,
  },
];

const REVIEW = reviewOf("shop", {
  metadata: {
    generateName: "cart-",
    annotations: { [Annotation.inject]: "enabled", [Annotation.multus]: "enabled" },
  },
});

/** What a webhook answers to a review. */
async function review(port: number, ca: string) {
  const headers = { "content-type": "application/json" };
  const options = { host: "127.0.0.1", port, ca, path: OperatorPath.webhook, method: "POST", headers, agent: false };
  const outgoing = request({ ...options, signal: AbortSignal.timeout(REVIEW_MS) });
  outgoing.end(REVIEW);
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  const body = await text(response);
  if (response.statusCode !== 200) return `${response.statusCode} ${body}`;
  const { uid, allowed, patch } = JSON.parse(body).response;
  return { uid, allowed, patch: JSON.parse(Buffer.from(patch ?? "bnVsbA==", "base64").toString()) };
}

const PATCHED = {
  uid: "1",
  allowed: true,
  patch: [{ op: "add", path: "/metadata/annotations/k8s.v1.cni.cncf.io~1networks", value: NetworkDefinition.name }],
};

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
    return (await get(port, path)).status;
  }

  const ready = (port: number, path: string) => eventually(async () => (await ask(port, path)) === 200 || undefined);

  async function surround({ isResetting = false, ...sent }: Flood, ports: Partial<Record<"http" | "tls", number>>) {
    const size = CLIENTS / Object.keys(ports).length;
    const kinds = Object.entries(ports) as ["http" | "tls", number][];
    const open = ([kind, port]: (typeof kinds)[number]) =>
      CrowdProcess.open(crowdScript(), port, sent[kind], { size, isResetting });
    crowds = await Promise.all(kinds.map(open));
  }

  function tell(name: string, { kind }: Flood, { clients = CLIENTS, memory = MEMORY } = {}): void {
    const peak = mebibytes(child?.pid, "VmHWM");
    process.stdout.write(
      `${name}: at most ${peak.toFixed(1)} MiB with ${clients} clients that ${kind}; the slowest probe took ${slowestMs.toFixed(0)} ms\n`,
    );
    slowestMs = 0;
    expect(peak).toBeLessThanOrEqual(memory);
  }

  test.each(["install", "multus"] as const)(
    "%s answers each probe with 1,024 descriptors and no more",
    async (name) => {
      const [silent] = FLOODS as [Flood];
      const [port, webhook] = [await freePort(), await freePort()];
      const isOperator = name === "multus";
      const args = isOperator ? operatorFlags(node.accountDir, { health: port, webhook }).flags : [];
      start(name, args, port, "1024:1024");
      const path = isOperator ? "/healthz" : "/live";
      await ready(port, path);
      await surround(silent, isOperator ? { http: port, tls: webhook } : { http: port });
      for (let probe = 0; probe < PROBES; probe++) expect(await answered(port, path)).toBe(200);
      tell(`${name}, 1,024 descriptors`, silent);
    },
  );

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
        expect(await review(webhook, ca)).toEqual(PATCHED);
      }
      tell("the Multus operator", flood);
    });
  });

  test.each(BODY_FLOODS)("the Multus operator answers each review beside TLS clients that $kind", async (flood) => {
    const [port, webhook] = [await freePort(), await freePort()];
    const { flags, ca } = operatorFlags(node.accountDir, { health: port, webhook });
    start("multus", flags, port);
    await ready(port, "/readyz");
    crowds = [await CrowdProcess.open(crowdScript(), webhook, flood.tls, { size: TLS_CLIENTS, handshakes: AT_ONCE })];
    for (let probe = 0; probe < REVIEWS; probe++) {
      const begin = performance.now();
      expect(await review(webhook, ca)).toEqual(PATCHED);
      slowestMs = Math.max(slowestMs, performance.now() - begin);
    }
    tell("the Multus operator", flood, { clients: TLS_CLIENTS, memory: TLS_MEMORY });
  });
});
