import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { differences } from "../../demo/snapshot";
import { forceDeleteInstaller } from "./faults";
import { onDisk } from "./paths";
import { pod, until } from "./pods";
import { clusterSuite, NET_DIR } from "./suite";

const NOWHERE = JSON.stringify({
  requiredDuringSchedulingIgnoredDuringExecution: {
    nodeSelectorTerms: [{ matchExpressions: [{ key: "pool", operator: "In", values: ["mesh"] }] }],
  },
});
const CHAIN = ["bridge", "portmap", "linkerd-cni"];
/** How long the API server takes a token for good that it has just seen. */
const REMEMBERED_MS = 12_000;

clusterSuite("a node of which the DaemonSet changes its mind", (cluster) => {
  let before: Record<string, string>;

  beforeAll(async () => {
    before = await cluster.directories();
    await cluster.install();
  });

  /** What the installers of this node have logged, those included that are gone. */
  const logged = () =>
    readdirSync(onDisk("/var/log/pods"), { recursive: true })
      .map((path) => join(onDisk("/var/log/pods"), String(path)))
      .filter((path) => path.includes("install-cni") && statSync(path).isFile())
      .map((path) => readFileSync(path, "utf8"))
      .join("");

  test("keeps everything where the pod is deleted by force, and its token refused", async () => {
    const installed = Object.keys(await cluster.directories());
    await sleep(REMEMBERED_MS);
    await forceDeleteInstaller(cluster.machine);
    for (let looks = 0; looks < 100; looks += 1) {
      expect(await cluster.chain()).toEqual(CHAIN);
      await sleep(50);
    }
    await cluster.rolledOut();
    expect(Object.keys(await cluster.directories())).toEqual(installed);
  });

  test("is put back byte for byte when it is not selected any more, and chained when it is again", async () => {
    await cluster.helm(
      "upgrade",
      "linkerd-cni",
      "-n",
      "linkerd-cni",
      "dist/charts/linkerd2-cni",
      "--set-json",
      `nodeAffinity=${NOWHERE}`,
    );
    await cluster.installerGone();
    expect(differences(before, await cluster.directories())).toEqual([]);
    await cluster.kubectl.start(pod("free", { proxy: "sidecar" }));
    await cluster.kubectl.stop("free");
    await cluster.kubectl.run("label", "node", "--all", "pool=mesh");
    await until("the chain", async () => (await cluster.chain()).length === CHAIN.length);
    await cluster.rolledOut();
    expect(await cluster.chain()).toEqual(CHAIN);
    await cluster.kubectl.run("label", "node", "--all", "pool-");
    await cluster.installerGone();
    expect(differences(before, await cluster.directories())).toEqual([]);
  });

  test("has no more to remove when all is uninstalled", async () => {
    await cluster.uninstall();
    expect(differences(before, await cluster.directories())).toEqual([]);
    process.stdout.write(
      `${logged()
        .split("\n")
        .filter((line) => line.includes("stopping:"))
        .join("\n")}\n${NET_DIR}\n`,
    );
  });
});
