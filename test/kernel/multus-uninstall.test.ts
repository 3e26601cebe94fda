import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { hostArchitecture } from "../../build/architecture";
import { buildPlugin } from "../../build/programs";
import { LOOKUP_SOCKET_NAME } from "../../cni/contract";
import { paths } from "../cluster/paths";
import { kubeconfig } from "../support/kubeconfig";
import { MultusApi } from "../support/multus";
import { Node } from "../support/netns";
import { buildPrograms } from "../support/program";
import { realApiMissing } from "../support/real-api";
import { missing, suite } from "../support/requirements";
import { until } from "../support/until";
import { type Installer, TestNode } from "./installer-node";

const MULTUS = join(paths.binaries, "multus", "multus");
const PRIMARY = join(paths.binaries, "containerd-2", "loopback");
const PODS = Array.from({ length: 10 }, (_, index) => `pod-${index}`);

function lacking(): string | undefined {
  const built = [MULTUS, PRIMARY].every((path) => existsSync(path)) ? undefined : "Multus: npm run cluster builds it";
  return realApiMissing() ?? missing({ root: true }) ?? built;
}

/** Multus' configuration: the network of all pods, and an API server that knows a pod's additional networks. */
const multusConfig = (node: TestNode) => ({
  cniVersion: "1.0.0",
  name: "multus-cni-network",
  type: "multus",
  kubeconfig: join(node.root, "admin"),
  binDir: node.binDir,
  cniDir: join(node.cacheDir, "multus"),
  delegates: [{ cniVersion: "1.0.0", name: "pods", plugins: [{ type: "loopback" }] }],
});

suite("an uninstall under the real Multus", lacking(), () => {
  let cluster!: MultusApi;
  let machine!: Node;
  let plugin!: Buffer;
  let node!: TestNode;
  let installer: Installer;
  let namespaces: readonly string[];
  let before: readonly string[];

  const attached = () =>
    readdirSync(join(node.cacheDir, "multus", "results")).filter((name) => /^linkerd-cni-/.test(name));
  const podPath = (name: string) => `/api/v1/namespaces/shop/pods/${name}`;

  /** Calls Multus as the container runtime does. */
  async function multus(verb: "ADD" | "DEL", pod: string) {
    const index = PODS.indexOf(pod);
    const args = `IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=${pod};K8S_POD_INFRA_CONTAINER_ID=sandbox${index}`;
    const ran = await machine.run(MULTUS, [], {
      input: JSON.stringify(multusConfig(node)),
      env: {
        CNI_COMMAND: verb,
        CNI_CONTAINERID: `sandbox${index}`,
        CNI_NETNS: namespaces[index] ?? "",
        CNI_IFNAME: "eth0",
        CNI_PATH: node.binDir,
        CNI_ARGS: args,
        PATH: "/usr/bin",
      },
    });
    return ran.status === 0 ? "done" : `${verb} ${pod}: ${ran.stdout}`;
  }

  const start = async (pod: string) => {
    const annotations = { "k8s.v1.cni.cncf.io/networks": "linkerd-cni" };
    const spec = { containers: [{ name: "linkerd-proxy", image: "proxy" }] };
    await cluster.api.create({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name: pod, namespace: "shop", annotations },
      spec,
    } as never);
    return multus("ADD", pod);
  };

  /** As the kubelet does: the sandbox first, and if that fails, the pod stays. */
  const end = async (pod: string) => {
    const ended = await multus("DEL", pod);
    await cluster.api.request({ method: "DELETE", path: podPath(pod), body: { gracePeriodSeconds: 0 } });
    return ended;
  };
  const endOneByOne = async (pods: readonly string[]) => {
    const ends: string[] = [];
    for (const pod of pods) ends.push(await end(pod));
    return ends;
  };
  const endAtOnce = (pods: readonly string[]) => Promise.all(pods.map(end));
  /** Starts an installer, and waits until it has the node: then plugins can look pods up. */
  const install = async () => {
    installer = node.start({ CHAINED: "false", KUBERNETES_SERVICE_PORT: String(cluster.api.admin.port) });
    await until("look-ups", () => existsSync(join(node.root, LOOKUP_SOCKET_NAME)));
  };
  const uninstall = async () => {
    expect(await installer.stop()).toBe(0);
    return [] as readonly string[];
  };
  const undefine = async () => {
    await cluster.api.json({ method: "DELETE", path: cluster.definitionPath("shop") });
    return [] as readonly string[];
  };

  beforeAll(async () => {
    cluster = await MultusApi.start();
    await cluster.installMultus();
    await cluster.namespace("shop");
    machine = await Node.open();
    namespaces = await Promise.all(PODS.map(() => machine.pod()));
    await buildPrograms();
    const built = new TestNode({});
    await buildPlugin(join(built.root, "plugin"), hostArchitecture());
    plugin = readFileSync(join(built.root, "plugin"));
    built.delete();
  });
  beforeEach(async () => {
    node = new TestNode({}, plugin);
    copyFileSync(PRIMARY, join(node.binDir, "loopback"));
    const { admin } = cluster.api;
    writeFileSync(join(node.root, "admin"), kubeconfig(admin));
    writeFileSync(join(node.accountDir, "token"), "admin");
    writeFileSync(join(node.accountDir, "ca.crt"), admin.ca ?? "");
    node.write("00-multus.conf", JSON.stringify(multusConfig(node)));
    before = Object.keys(node.content());
    await install();
    const kubeconfigPath = join(node.netDir, "ZZZ-linkerd-cni-kubeconfig");
    const config = {
      cniVersion: "1.0.0",
      name: "linkerd-cni",
      type: "linkerd-cni",
      kubernetes: { kubeconfig: kubeconfigPath },
      "run-dir": node.root,
      linkerd: { "proxy-uid": 2102, "incoming-proxy-port": 4143, "outgoing-proxy-port": 4140 },
    };
    const body = {
      apiVersion: "k8s.cni.cncf.io/v1",
      kind: "NetworkAttachmentDefinition",
      metadata: { name: "linkerd-cni" },
      spec: { config: JSON.stringify(config) },
    };
    await cluster.api.json({ method: "POST", path: cluster.definitionsPath("shop"), body });
    for (const pod of PODS) expect(await start(pod)).toBe("done");
    expect(attached()).toHaveLength(PODS.length);
  });
  afterEach(async () => {
    await installer.stop("SIGKILL");
    await cluster.api.request({ method: "DELETE", path: cluster.definitionPath("shop") });
    for (const pod of PODS)
      await cluster.api.request({ method: "DELETE", path: podPath(pod), body: { gracePeriodSeconds: 0 } });
    node.delete();
  });
  afterAll(async () => {
    await cluster?.close();
    machine?.close();
    rmSync(node?.root ?? "", { recursive: true, force: true });
  });

  type Step = () => Promise<readonly string[]>;
  const orders: readonly (readonly [string, () => readonly Step[]])[] = [
    ["the chart first, then the pods, one after another", () => [uninstall, () => endOneByOne(PODS)]],
    ["the definitions, the chart, then all pods at once", () => [undefine, uninstall, () => endAtOnce(PODS)]],
    [
      "the chart and all pods at the same time",
      () => [async () => (await Promise.all([uninstall(), endAtOnce(PODS)])).flat()],
    ],
  ];

  test.each(orders)("%s: every pod ends, and nothing of ours is left", async (_, steps) => {
    const ends: string[] = [];
    for (const step of steps()) ends.push(...(await step()));
    expect(ends).toEqual(PODS.map(() => "done"));
    expect(Object.keys(node.content())).toEqual(before);
    expect(attached()).toEqual([]);
  });

  test("while a pod is attached the plugin stays; a returning installer keeps it after the last one", async () => {
    await uninstall();
    await endOneByOne(PODS.slice(1));
    expect(Object.keys(node.content()).sort()).toEqual(
      [
        ...before,
        ...["bin/linkerd-cni", "bin/linkerd-cni-redirect"],
        ...["bin/linkerd-cni.attached", "bin/linkerd-cni.attached/sandbox0@net1"],
      ].sort(),
    );
    await install();
    expect(await endOneByOne(PODS.slice(0, 1))).toEqual(["done"]);
    expect(node.answers()).toBe(true);
    await uninstall();
    expect(Object.keys(node.content())).toEqual(before);
  });
});
