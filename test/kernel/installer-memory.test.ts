import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { outputs } from "../../build/paths";
import { hostRuntime, RUNTIME_ENVIRONMENT } from "../../build/runtime";
import { ApiStub, json } from "../support/api-server";
import { until } from "../support/controllers";
import { suite } from "../support/requirements";
import { buildInstaller, TestNode } from "./installer-node";

const LIMIT_KILOBYTES = 45 * 1024;
const PORT = 19_873;

function memory(pid: number): Readonly<Record<string, number>> {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Object.fromEntries(
    ["VmHWM", "RssAnon", "RssFile"].map((name) => [name, Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1])]),
  );
}

suite("the idle installer", undefined, () => {
  test("takes at most 45 MB at its peak, as the image runs it, with TLS, probes and metrics in use", async () => {
    await buildInstaller();
    const api = await ApiStub.start(json(200, { metadata: {} }));
    const node = new TestNode({ "10-k.conflist": '{"name":"k","cniVersion":"1.0.0","plugins":[{"type":"bridge"}]}' });
    writeFileSync(join(node.accountDir, "ca.crt"), api.ca);
    const runtime = join(node.root, "runtime");
    copyFileSync(hostRuntime(), runtime);
    // A file that was just written lies in the page cache in large pieces, which the kernel maps, and counts, whole.
    execFileSync("dd", [`of=${runtime}`, "oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none"]);
    const child = spawn(runtime, [outputs.installer], {
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
        HEALTH_PORT: String(PORT),
        CNI_NETWORK_CONFIG: '{"type":"linkerd-cni"}',
      },
    });
    const ask = (path: string) => fetch(`http://127.0.0.1:${PORT}/${path}`);
    await until("the installer", async () => {
      await sleep(250);
      return (await ask("ready").catch(() => undefined))?.status === 200;
    });
    for (let round = 0; round < 20; round += 1) {
      const answers = await Promise.all(["ready", "live", "metrics"].map(ask));
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    }
    const used = memory(child.pid ?? 0);
    child.kill("SIGKILL");
    api.close();
    node.delete();
    process.stdout.write(
      `idle installer: peak ${used["VmHWM"]} kB; ${used["RssAnon"]} kB its own, ${used["RssFile"]} kB shared with the file\n`,
    );
    expect(used["VmHWM"]).toBeLessThanOrEqual(LIMIT_KILOBYTES);
  }, 60_000);
});
