/** Programs of the image that listen, as the image runs them: clients that never say a word keep no probe from its answer. */
import type { ChildProcess } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { OperatorPath } from "../../cni/contract";
import { eventually } from "../../nri/runtime.testing";
import { ApiStub } from "../support/api-server";
import { Crowd } from "../support/crowd";
import { freePort } from "../support/ports";
import { buildPrograms, type ProgramName, startProgram } from "../support/program";
import { rounds } from "../support/rounds";
import { certificateFor } from "../support/webhook";
import { TestNode } from "./installer-node";

const CLIENTS = rounds(2000, 9000);
/** No bound on how fast answers are: a busy machine may be slow. Where they come at all, this is printed. */
const PATIENCE_MS = 30_000;
/** How many probes in a row fail until it restarts a container. */
const FAILURE_THRESHOLD = 3;
const PROBES = 10;

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
    const outgoing = request({ ...options, timeout: PATIENCE_MS }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    outgoing.on("timeout", () => outgoing.destroy(new Error("no answer")));
    outgoing.on("error", reject);
    outgoing.end(REVIEW);
  });
}

jest.setTimeout(240_000);

describe("with thousands of silent connections", () => {
  let api: ApiStub;
  let node: TestNode;
  let child: ChildProcess | undefined;
  let crowds: readonly Crowd[] = [];
  let slowestMs = 0;

  beforeAll(async () => {
    await buildPrograms();
    api = await ApiStub.start((request, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      if (request.url?.includes("watch=")) response.flushHeaders();
      else response.end(JSON.stringify({ metadata: { name: "shop", resourceVersion: "1" }, items: [] }));
    });
    node = new TestNode({ "10-k.conflist": '{"name":"k","cniVersion":"1.0.0","plugins":[{"type":"bridge"}]}' });
    writeFileSync(join(node.accountDir, "ca.crt"), api.ca);
  });
  afterEach(() => {
    for (const crowd of crowds) crowd.leave();
    child?.kill("SIGKILL");
  });
  afterAll(() => {
    api.close();
    node.delete();
  });

  const repair = (port: number) => [`--admin-addr=127.0.0.1:${port}`, "--installer-ready="];

  function start(name: ProgramName, args: readonly string[], port: number): void {
    child = startProgram(name, {
      args,
      isSilent: true,
      env: {
        CONTAINER_MOUNT_PREFIX: "",
        DEST_CNI_NET_DIR: node.netDir,
        DEST_CNI_BIN_DIR: node.binDir,
        CONTAINER_CNI_BIN_DIR: node.imageDir,
        SERVICE_ACCOUNT_DIR: node.accountDir,
        KUBERNETES_SERVICE_HOST: "127.0.0.1",
        KUBERNETES_SERVICE_PORT: String(api.port),
        NODE_NAME: "node-1",
        LINKERD_CNI_REPAIR_CONTROLLER_NODE_NAME: "node-1",
        LINKERD_CNI_REPAIR_CONTROLLER_POD_NAME: "linkerd-cni-abcde",
        POD_NAMESPACE: "linkerd-multus",
        POD_NAME: "linkerd-multus-abcde",
        HEALTH_PORT: String(port),
        CNI_NETWORK_CONFIG: '{"type":"linkerd-cni"}',
      },
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
    const signal = AbortSignal.timeout(PATIENCE_MS);
    return (await fetch(`http://127.0.0.1:${port}${path}`, { signal, headers: { connection: "close" } })).status;
  }

  const ready = (port: number, path: string) =>
    eventually(async () => ((await ask(port, path).catch(() => 0)) === 200 ? true : undefined));

  async function surround(...ports: readonly number[]): Promise<void> {
    const size = CLIENTS / ports.length;
    crowds = ports.map((port) => new Crowd(port, "", size));
    for (const crowd of crowds) await crowd.grown(size);
  }

  function tellMemory(name: string): void {
    const resident = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child?.pid}/status`, "utf8"))?.[1];
    process.stdout.write(
      `${name}: ${resident} kB with ${CLIENTS} silent connections, a probe took at most ${slowestMs.toFixed(0)} ms\n`,
    );
    slowestMs = 0;
  }

  test.each<[ProgramName, (port: number) => readonly string[]]>([
    ["install", () => []],
    ["repair", repair],
  ])("%s answers each probe", async (name, args) => {
    const port = await freePort();
    start(name, args(port), port);
    await ready(port, "/live");
    await surround(port);
    for (let probe = 0; probe < PROBES; probe++) expect(await answered(port, "/live")).toBe(200);
    tellMemory(name);
  });

  test("the Multus operator answers each probe and each review", async () => {
    const [port, webhook] = [await freePort(), await freePort()];
    const { cert, key } = await certificateFor("webhook");
    writeFileSync(join(node.accountDir, "tls.crt"), cert);
    writeFileSync(join(node.accountDir, "tls.key"), key);
    const certificates = ["-webhook-certificates=mounted", `-webhook-certificate-dir=${node.accountDir}`];
    const addresses = [`-health-probe-bind-address=127.0.0.1:${port}`, `-webhook-port=${webhook}`];
    const flags = [...addresses, ...certificates, "-leader-elect=false", "-metrics-bind-address=0"];
    start("multus", flags, port);
    await ready(port, "/readyz");
    await surround(port, webhook);
    for (let probe = 0; probe < PROBES; probe++) {
      expect(await answered(port, "/healthz")).toBe(200);
      expect(await review(webhook, cert)).toBe(200);
    }
    tellMemory("the Multus operator");
  });
});
