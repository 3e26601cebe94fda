/** Programs of the image that listen, as the image runs them: clients that never say a word keep no probe from its answer. */
import type { ChildProcess } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../../nri/runtime.testing";
import { ApiStub } from "../support/api-server";
import { Crowd } from "../support/crowd";
import { freePort } from "../support/ports";
import { buildPrograms, type ProgramName, startProgram } from "../support/program";
import { TestNode } from "./installer-node";

const CLIENTS = 5000;
/** How long the kubelet waits for a probe's answer. */
const KUBELET_TIMEOUT_MS = 1000;
const PROBES = 10;

jest.setTimeout(240_000);

describe("with thousands of silent connections", () => {
  let api: ApiStub;
  let node: TestNode;
  let child: ChildProcess | undefined;
  let crowd: Crowd | undefined;

  beforeAll(async () => {
    await buildPrograms();
    api = await ApiStub.start((request, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      if (request.url?.includes("watch=")) response.flushHeaders();
      else response.end(JSON.stringify({ metadata: { resourceVersion: "1" }, items: [] }));
    });
    node = new TestNode({ "10-k.conflist": '{"name":"k","cniVersion":"1.0.0","plugins":[{"type":"bridge"}]}' });
    writeFileSync(join(node.accountDir, "ca.crt"), api.ca);
  });
  afterEach(() => {
    crowd?.leave();
    child?.kill("SIGKILL");
  });
  afterAll(() => {
    api.close();
    node.delete();
  });

  test.each<[ProgramName, (port: number) => readonly string[]]>([
    ["install", () => []],
    ["repair", (port) => [`--admin-addr=127.0.0.1:${port}`, "--installer-ready="]],
  ])("%s answers each probe", async (name, args) => {
    const port = await freePort();
    child = startProgram(name, {
      args: args(port),
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
        HEALTH_PORT: String(port),
        CNI_NETWORK_CONFIG: '{"type":"linkerd-cni"}',
      },
    });
    const ask = async () => {
      const signal = AbortSignal.timeout(KUBELET_TIMEOUT_MS);
      return (await fetch(`http://127.0.0.1:${port}/live`, { signal, headers: { connection: "close" } })).status;
    };
    await eventually(async () => ((await ask().catch(() => 0)) === 200 ? true : undefined));
    crowd = new Crowd(port, "", CLIENTS);
    await crowd.grown(CLIENTS);
    for (let probe = 0; probe < PROBES; probe++) expect(await ask()).toBe(200);
    const resident = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1];
    process.stdout.write(`${name}: ${resident} kB with ${CLIENTS} silent connections\n`);
  });
});
