import { type ChildProcess, execFileSync } from "node:child_process";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { outputs } from "../../build/paths";
import { ApiStub } from "../support/api-server";
import { until } from "../support/controllers";
import { freePort } from "../support/ports";
import { buildPrograms, type ProgramName, startProgram } from "../support/program";
import { TestNode } from "./installer-node";

function memory(pid: number): Readonly<Record<string, number>> {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Object.fromEntries(
    ["VmHWM", "RssAnon", "RssFile"].map((name) => [name, Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1])]),
  );
}

describe("memory of the image's programs, as the image runs them, with TLS, probes and metrics in use", () => {
  let api: ApiStub;
  let node: TestNode;
  let executable: string;
  let child: ChildProcess | undefined;

  beforeAll(async () => {
    await buildPrograms();
    api = await ApiStub.start((request, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      if (request.url?.includes("watch=")) response.flushHeaders();
      else response.end(JSON.stringify({ metadata: { resourceVersion: "1" }, items: [] }));
    });
    node = new TestNode({ "10-k.conflist": '{"name":"k","cniVersion":"1.0.0","plugins":[{"type":"bridge"}]}' });
    writeFileSync(join(node.accountDir, "ca.crt"), api.ca);
    executable = join(node.root, "linkerd-cni");
    copyFileSync(outputs.plugin, executable);
    // A file that was just written lies in the page cache in large pieces, which the kernel maps, and counts, whole.
    execFileSync("dd", [`of=${executable}`, "oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none"]);
  });
  afterEach(() => child?.kill("SIGKILL"));
  afterAll(() => {
    api.close();
    node.delete();
  });

  /** Starts a program, waits until it is ready, and asks it for all that it serves. */
  async function peakOf(name: ProgramName, port: number, args: readonly string[] = []): Promise<number> {
    child = startProgram(name, {
      args,
      executable,
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
    const ask = (path: string) => fetch(`http://127.0.0.1:${port}/${path}`);
    await until("it to be ready", async () => (await ask("ready").catch(() => undefined))?.status === 200);
    for (let round = 0; round < 20; round += 1) {
      const answers = await Promise.all(["ready", "live", "metrics"].map(ask));
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    }
    const used = memory(child.pid ?? 0);
    process.stdout.write(
      `${name}: peak ${used["VmHWM"]} kB; ${used["RssAnon"]} kB its own, ${used["RssFile"]} kB shared with the file\n`,
    );
    return used["VmHWM"] ?? Number.NaN;
  }

  test("the installer takes at most 5 MiB at its peak", async () => {
    expect(await peakOf("install", await freePort())).toBeLessThanOrEqual(5 * 1024);
  });

  test("the repair controller takes at most 6 MiB at its peak", async () => {
    const port = await freePort();
    const args = [`--admin-addr=127.0.0.1:${port}`, "--installer-ready="];
    expect(await peakOf("repair", port, args)).toBeLessThanOrEqual(6 * 1024);
  });
});
