/** Rollouts over five nodes by the real DaemonSet controller, of versions that work and that do not. */
import { cpSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { App, Chart } from "cdk8s";
import { LinkerdCni } from "../../constructs/linkerd-cni";
import { DaemonSetController, type NodePod, SimulatedKubelet, targetOf } from "../support/daemonset-nodes";
import { buildPrograms } from "../support/program";
import { type ApiObject, RealApi, realApiMissing } from "../support/real-api";
import { suite } from "../support/requirements";
import { until } from "../support/until";
import { SMALL_PLUGIN, TestNode } from "./installer-node";

const LIST = '{"cniVersion":"1.0.0","name":"k","plugins":[\n  {"type":"bridge"}\n]}\n';
const NAME = "10-k.conflist";
const NODES = ["node-1", "node-2", "node-3", "node-4", "node-5"];
const NAMESPACE = "linkerd-cni";
const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`;
const DAEMON_SETS = `/apis/apps/v1/namespaces/${NAMESPACE}/daemonsets`;
const RIGHTS = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];

type Version = Readonly<Record<string, string>>;
const GOOD: Version = { CONTAINER_CNI_BIN_DIR: "NODE/image-1" };
const NEWER: Version = { CONTAINER_CNI_BIN_DIR: "NODE/image-2" };

/** A version, and what its pod's log says. */
const bad: readonly (readonly [string, Version, string])[] = [
  ["an image whose plugin does not run", { CONTAINER_CNI_BIN_DIR: "NODE/image-bad" }, "does not answer VERSION"],
  ["a token that is refused", { ...NEWER, SERVICE_ACCOUNT_DIR: "NODE/refused" }, "does not accept this pod's token"],
  [
    "an API server that cannot be reached",
    { ...NEWER, KUBERNETES_SERVICE_PORT: "1" },
    "the API server does not answer",
  ],
  ["a directory that is not there", { ...NEWER, DEST_CNI_BIN_DIR: "NODE/missing" }, "ENOENT"],
  ["an installer that crashes at its start", { ...NEWER, LOG_LEVEL: "crash" }, 'LOG_LEVEL "crash"'],
];

interface Spec {
  readonly selector: object;
  readonly updateStrategy: object;
  readonly template: {
    readonly metadata: { readonly labels: object };
    readonly spec: { readonly tolerations: object };
  };
}

interface DaemonSet {
  readonly metadata: { readonly generation: number };
  readonly status: {
    readonly observedGeneration?: number;
    readonly numberAvailable?: number;
    readonly updatedNumberScheduled?: number;
  };
}

suite("a rollout over five nodes", realApiMissing(), () => {
  let api: RealApi;
  let controller: DaemonSetController;
  let kubelet: SimulatedKubelet;
  const nodes = new Map<string, TestNode>();
  const path = `${DAEMON_SETS}/linkerd-cni`;

  beforeAll(async () => {
    await buildPrograms();
    api = await RealApi.start(`system:serviceaccount:${NAMESPACE}:linkerd-cni`);
    const chart = new Chart(new App(), "chart");
    new LinkerdCni(chart, "cni", { namespace: NAMESPACE });
    const objects = chart.toJson() as (ApiObject & { spec: object })[];
    const rights = objects.filter(({ kind }) => RIGHTS.includes(kind));
    const named = (kind: string, name: string): ApiObject => ({ apiVersion: "v1", kind, metadata: { name } });
    await api.create(named("Namespace", NAMESPACE), ...rights, ...NODES.map((name) => named("Node", name)));
    for (const name of NODES) nodes.set(name, prepared(api));
    controller = await DaemonSetController.start(api);
    kubelet = new SimulatedKubelet(api, PODS, nodes, (node) => node.isChained(NAME));
    kubelet.start();
    const daemonSet = objects.find(({ kind }) => kind === "DaemonSet");
    if (daemonSet === undefined) throw new Error("the chart has no DaemonSet");
    const { selector, updateStrategy, template } = daemonSet.spec as Spec;
    const { labels } = template.metadata;
    const { tolerations } = template.spec;
    const containers = [{ name: "install-cni", image: "none" }];
    const spec = { selector, updateStrategy, template: { metadata: { labels }, spec: { tolerations, containers } } };
    await api.json({ method: "POST", path: DAEMON_SETS, body: { metadata: { name: "linkerd-cni" }, spec } });
    await roll("1", GOOD);
    await rolledOut("1");
    kubelet.watchful = true;
  });
  afterAll(async () => {
    await kubelet?.stop();
    controller?.stop();
    await api?.close();
    for (const node of nodes.values()) node.delete();
  });
  afterEach(() => expect(kubelet.broken).toEqual([]));

  const patch = (spec: object) =>
    api.json({ method: "PATCH", path, body: { spec }, contentType: "application/merge-patch+json" });

  /** Writes a version's template. */
  async function roll(version: string, env: Version): Promise<void> {
    const list = Object.entries(env).map(([name, value]) => ({ name, value }));
    const containers = [{ name: "install-cni", image: "none", env: list }];
    await patch({ template: { metadata: { labels: { version } }, spec: { containers } } });
  }

  async function rolledOut(version: string): Promise<void> {
    const isDone = async () => {
      const { metadata, status } = await api.json<DaemonSet>({ path });
      if (status.observedGeneration !== metadata.generation) return false;
      if (status.numberAvailable !== NODES.length || status.updatedNumberScheduled !== NODES.length) return false;
      return (await kubelet.pods()).every(({ metadata: { labels } }) => labels["version"] === version);
    };
    await until(`version ${version} on all nodes`, isDone);
  }

  let revisions = 20;
  /** Has the controller look at the DaemonSet again. */
  async function synced(): Promise<void> {
    await patch({ revisionHistoryLimit: revisions++ });
    await until("the controller", async () => {
      const { metadata, status } = await api.json<DaemonSet>({ path });
      return status.observedGeneration === metadata.generation;
    });
  }

  const uids = (pods: readonly NodePod[]) => pods.map(({ metadata }) => metadata.uid).sort();

  /** The primary CNI writes its configuration again. */
  async function rewrite(name: string): Promise<void> {
    const node = nodes.get(name);
    if (node === undefined) throw new Error(`no ${name}`);
    kubelet.watchful = false;
    node.write(NAME, LIST);
    await until("the chain", () => node.isChained(NAME));
    kubelet.watchful = true;
  }

  test.each(bad)("of %s reaches one node, which stays chained, and rollout undo repairs it", async (_, env, says) => {
    const before = await kubelet.pods();
    const version = `bad-${bad.findIndex(([, each]) => each === env)}`;
    await roll(version, env);
    await until("the new pod's complaint", async () => kubelet.log(version, await kubelet.pods()).includes(says));
    const [touched = ""] = kubelet.touched.get(version) ?? [];
    await rewrite(touched);
    await kubelet.answer(before);
    for (let round = 0; round < 3; round += 1) {
      await kubelet.probes(3);
      await synced();
    }
    expect([...(kubelet.touched.get(version) ?? [])]).toEqual([touched]);
    const during = await kubelet.pods();
    expect(during).toHaveLength(NODES.length + 1);
    await roll("1", GOOD);
    await rolledOut("1");
    expect(uids(await kubelet.pods())).toEqual(uids(before));
    for (const name of NODES) await rewrite(name);
  });

  test("of a working version reaches every node, also one without room for a second pod once its old pod is deleted", async () => {
    kubelet.full.add("node-3");
    await roll("2", NEWER);
    const waiting = async () =>
      (await kubelet.pods()).some((pod) => targetOf(pod) === "node-3" && pod.spec.nodeName === undefined);
    await until("a pod that waits for node-3", waiting);
    const [old] = (await kubelet.pods()).filter(({ spec }) => spec.nodeName === "node-3");
    await api.json({ method: "DELETE", path: `${PODS}/${old?.metadata.name}` });
    await rolledOut("2");
    for (const node of nodes.values()) expect(node.content()["bin/linkerd-cni"]).toContain("# version 2");
    expect(kubelet.touched.get("2")).toEqual(new Set(NODES));
  });
});

/** A node with the image's versions, and the service account's token. */
function prepared(api: RealApi): TestNode {
  const node = new TestNode({ [NAME]: LIST });
  writeFileSync(join(node.binDir, "bridge"), "");
  writeFileSync(join(node.accountDir, "token"), api.server.token ?? "");
  writeFileSync(join(node.accountDir, "ca.crt"), api.server.ca ?? "");
  const images = {
    "image-1": SMALL_PLUGIN,
    "image-2": `${SMALL_PLUGIN}# version 2\n`,
    "image-bad": "#!/bin/sh\nexit 7\n",
  };
  for (const [name, plugin] of Object.entries(images)) {
    if (!existsSync(join(node.root, name))) mkdirSync(join(node.root, name));
    writeFileSync(join(node.root, name, "linkerd-cni"), plugin, { mode: 0o755 });
  }
  cpSync(node.accountDir, join(node.root, "refused"), { recursive: true });
  writeFileSync(join(node.root, "refused", "token"), "nobody's");
  return node;
}
