import { spawn } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { rounds } from "../support/rounds";
import { differences } from "../support/snapshot";
import { until } from "../support/until";
import { NODE } from "./addresses";
import { median } from "./costs";
import { followInstaller, forceDeleteInstaller } from "./faults";
import { type Pod, pod, podAnnotations, podSpec } from "./pods";
import { clusterSuite } from "./suite";

const NOWHERE = JSON.stringify({
  requiredDuringSchedulingIgnoredDuringExecution: {
    nodeSelectorTerms: [{ matchExpressions: [{ key: "pool", operator: "In", values: ["mesh"] }] }],
  },
});
const REFUSED = "our own token is refused (401), but the one not bound to our pod is accepted: only our pod is deleted";
const CHAIN = ["bridge", "portmap", "linkerd-cni"];
/** How long the API server takes a token for good that it has just seen. */
const REMEMBERED_MS = 12_000;
/** Meshed pods that are evicted, and start again: with FULL=1 as many as the node has addresses for. */
const EVICTED = rounds(4, 250);
/** Meshed pods that start at once beside processes that take all the time that they get. */
const BESIDE = rounds(4, 20);
const LOAD = rounds(2, 30);
/** How long so many take at most. */
const START_S = rounds(120, 900);

clusterSuite("a node that is drained, and one that the DaemonSet no longer selects, and selects again", (cluster) => {
  let before: Record<string, string>;

  beforeAll(async () => {
    before = await cluster.directories();
    await cluster.install();
    await cluster.kubectl.start(pod("client"));
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

  /** Runs meshed pods with linkerd's validator by a Deployment, and waits until they are ready. */
  const deploy = async (name: string, replicas: number) => {
    const options = { proxy: "sidecar", validator: true } as const;
    const labels = { app: name };
    await cluster.kubectl.apply({
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name, namespace: "default" },
      spec: {
        replicas,
        selector: { matchLabels: labels },
        template: { metadata: { labels, annotations: podAnnotations(options) }, spec: podSpec(options) },
      },
    });
    await available(name);
  };
  const available = (name: string) =>
    cluster.kubectl.run("rollout", "status", `deployment/${name}`, `--timeout=${START_S}s`);

  const remove = async (name: string) => {
    await cluster.kubectl.run("delete", `deployment/${name}`, "--timeout=180s");
    await cluster.kubectl.run("wait", "pods", `--selector=app=${name}`, "--for=delete", `--timeout=${START_S}s`);
  };

  /** Expects that each pod of a Deployment is redirected, and was so before its validator ran. */
  const allRedirected = async (name: string, replicas: number) => {
    const { items } = await cluster.kubectl.json<{ items: Pod[] }>("get", "pods", `--selector=app=${name}`);
    const addresses = items.map(({ status }) => `${status.podIP}:8080`);
    expect(addresses).toHaveLength(replicas);
    const answers = await cluster.kubectl.dialAll("client", addresses);
    expect(answers).toEqual(addresses.map((original) => ({ port: 4143, original })));
    // A kubelet without time counts containers, too, that it could not start: a validator that failed has left its end.
    const ends = items.map(({ status }) => status.initContainerStatuses?.[0]?.lastState);
    expect(ends).toEqual(Array(replicas).fill({}));
    const names = new Set(items.map(({ metadata }) => `default/${metadata.name}`));
    const added = (await cluster.additions(/./)).filter(({ pod: of = "" }) => names.has(of));
    const times = added.map(({ ms }) => ms).sort((one, other) => one - other);
    process.stdout.write(
      `${replicas} meshed pods redirected by ${added.length} ADDs: ${median(times).toFixed(1)} ms in the median, 99 of 100 within ` +
        `${times[Math.ceil(times.length * 0.99) - 1]} ms\n`,
    );
  };

  test(
    `starts ${BESIDE} pods redirected beside ${LOAD} busy processes`,
    async () => {
      const busy = Array.from({ length: LOAD }, () => spawn("sh", ["-c", "while :; do :; done"]));
      try {
        await deploy("beside", BESIDE);
      } finally {
        for (const each of busy) each.kill("SIGKILL");
      }
      await allRedirected("beside", BESIDE);
      await remove("beside");
    },
    START_S * 2_000,
  );

  test(
    `keeps everything while ${EVICTED} pods are drained from it, and starts them redirected afterwards`,
    async () => {
      const { kubectl } = cluster;
      const installed = Object.keys(await cluster.directories());
      const installers = await cluster.restarts();
      await deploy("drained", EVICTED);
      await allRedirected("drained", EVICTED);
      await kubectl.run("drain", NODE.name, "--ignore-daemonsets", "--force", `--timeout=${START_S}s`);
      const { items: waiting } = await kubectl.json<{ items: Pod[] }>("get", "pods");
      expect(waiting.map(({ status }) => status.phase)).toEqual(Array(EVICTED).fill("Pending"));
      expect(await cluster.chain()).toEqual(CHAIN);
      expect(Object.keys(await cluster.directories())).toEqual(installed);
      // The DaemonSet's pod is neither evicted nor started again.
      expect(await cluster.restarts()).toEqual(installers);
      await kubectl.run("uncordon", NODE.name);
      await available("drained");
      await kubectl.start(pod("client"));
      await allRedirected("drained", EVICTED);
      await remove("drained");
      await kubectl.stop("client");
    },
    START_S * 3_000,
  );

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
