import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { outputs } from "../../build/paths";
import { buildControllers } from "../../build/programs";
import { hostRuntime, RUNTIME_ENVIRONMENT } from "../../build/runtime";
import { ApiStub } from "../support/api-server";
import { until } from "../support/controllers";
import { freePort } from "../support/ports";
import { buildInstaller, TestNode } from "./installer-node";

function memory(pid: number): Readonly<Record<string, number>> {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Object.fromEntries(
    ["VmHWM", "RssAnon", "RssFile"].map((name) => [name, Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1])]),
  );
}

describe("memory of the image's programs, as the image runs them, with TLS, probes and metrics in use", () => {
  let api: ApiStub;
  let node: TestNode;
  let runtime: string;
  let child: ChildProcess | undefined;

  beforeAll(async () => {
    await buildInstaller();
    await buildControllers();
    api = await ApiStub.start((request, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      if (request.url?.includes("watch=")) response.flushHeaders();
      else response.end(JSON.stringify({ metadata: { resourceVersion: "1" }, items: [] }));
    });
    node = new TestNode({ "10-k.conflist": '{"name":"k","cniVersion":"1.0.0","plugins":[{"type":"bridge"}]}' });
    writeFileSync(join(node.accountDir, "ca.crt"), api.ca);
    runtime = join(node.root, "runtime");
    copyFileSync(hostRuntime(), runtime);
    // A file that was just written lies in the page cache in large pieces, which the kernel maps, and counts, whole.
    execFileSync("dd", [`of=${runtime}`, "oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none"]);
  });
  afterEach(() => child?.kill("SIGKILL"));
  afterAll(() => {
    api.close();
    node.delete();
  });

  /** Starts a program, waits until it is ready, and asks it for all that it serves. */
  async function peakOf(args: readonly string[], port: number): Promise<number> {
    child = spawn(runtime, args, {
      stdio: "ignore",
      env: {
        ...RUNTIME_ENVIRONMENT,
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
    const ask = (path: string) => fetch(`http://127.0.0.1:${port}/${path}`);
    await until("it to be ready", async () => (await ask("ready").catch(() => undefined))?.status === 200);
    for (let round = 0; round < 20; round += 1) {
      const answers = await Promise.all(["ready", "live", "metrics"].map(ask));
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    }
    const used = memory(child.pid ?? 0);
    process.stdout.write(
      `${args[1] ?? "installer"}: peak ${used["VmHWM"]} kB; ${used["RssAnon"]} kB its own, ${used["RssFile"]} kB shared with the file\n`,
    );
    return used["VmHWM"] ?? Number.NaN;
  }

  test("the installer takes at most 45 MiB at its peak", async () => {
    expect(await peakOf([outputs.installer], await freePort())).toBeLessThanOrEqual(45 * 1024);
  });

  test("the repair controller takes at most 51 MiB at its peak", async () => {
    const port = await freePort();
    const args = [outputs.controllers, "repair", `--admin-addr=127.0.0.1:${port}`, "--installer-ready="];
    expect(await peakOf(args, port)).toBeLessThanOrEqual(51 * 1024);
  });
});
