import { setTimeout as sleep } from "node:timers/promises";
import { differences } from "../../demo/snapshot";
import { NODE } from "./addresses";
import { followInstaller, forceDeleteInstaller } from "./faults";
import { type Pod, pod, podAnnotations, podSpec, until } from "./pods";
import { clusterSuite } from "./suite";

const NOWHERE = JSON.stringify({
  requiredDuringSchedulingIgnoredDuringExecution: {
    nodeSelectorTerms: [{ matchExpressions: [{ key: "pool", operator: "In", values: ["mesh"] }] }],
  },
});
const REFUSED = "our own token is refused (401), but the plugin's is accepted: only our pod is deleted";
const CHAIN = ["bridge", "portmap", "linkerd-cni"];
/** How long the API server takes a token for good that it has just seen. */
const REMEMBERED_MS = 12_000;

clusterSuite("a node that is drained, and one that the DaemonSet no longer selects, and selects again", (cluster) => {
  let before: Record<string, string>;

  beforeAll(async () => {
    before = await cluster.directories();
    await cluster.install();
  });

  test("keeps everything if the pod is deleted by force and its token refused", async () => {
    const installed = Object.keys(await cluster.directories());
    // The API server may hear of the deletion later than the kubelet does; then it still takes the token.
    for (let said = "", tries = 0; !said.includes(REFUSED); tries++) {
      expect([tries < 5, said]).toEqual([true, said]);
      await sleep(REMEMBERED_MS);
      const log = await followInstaller(cluster.machine);
      await forceDeleteInstaller(cluster.machine);
      for (let looks = 0; looks < 100; looks += 1) {
        expect(await cluster.chain()).toEqual(CHAIN);
        await sleep(50);
      }
      said = await log();
      await cluster.rolledOut();
    }
    expect(Object.keys(await cluster.directories())).toEqual(installed);
  });

  test("keeps everything while it is drained, and starts the evicted pods redirected afterwards", async () => {
    const { kubectl } = cluster;
    const installed = Object.keys(await cluster.directories());
    const installers = await cluster.restarts();
    const options = { proxy: "sidecar", validator: true } as const;
    const labels = { app: "drained" };
    await kubectl.start(pod("client"));
    await kubectl.apply({
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: "drained", namespace: "default" },
      spec: {
        replicas: 4,
        selector: { matchLabels: labels },
        template: { metadata: { labels, annotations: podAnnotations(options) }, spec: podSpec(options) },
      },
    });
    const available = () => kubectl.run("rollout", "status", "deployment/drained", "--timeout=120s");
    await available();
    await kubectl.run("drain", NODE.name, "--ignore-daemonsets", "--force", "--timeout=60s");
    const { items: waiting } = await kubectl.json<{ items: Pod[] }>("get", "pods");
    expect(waiting.map(({ status }) => status.phase)).toEqual(Array(4).fill("Pending"));
    expect(await cluster.chain()).toEqual(CHAIN);
    expect(Object.keys(await cluster.directories())).toEqual(installed);
    // The DaemonSet's pod is neither evicted nor started again.
    expect(await cluster.restarts()).toEqual(installers);
    await kubectl.run("uncordon", NODE.name);
    await available();
    await kubectl.start(pod("client"));
    const { items } = await kubectl.json<{ items: Pod[] }>("get", "pods", "--selector=app=drained");
    const addresses = items.map(({ status }) => `${status.podIP}:8080`);
    expect(await kubectl.dialAll("client", addresses)).toEqual(addresses.map((original) => ({ port: 4143, original })));
    expect(items.map(({ status }) => status.initContainerStatuses?.[0]?.restartCount)).toEqual(Array(4).fill(0));
    await kubectl.run("delete", "deployment/drained", "pod/client", "--timeout=60s");
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
});
