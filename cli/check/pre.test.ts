import { PLATFORM_NAMES } from "../../constructs/platforms";
import { chartReference } from "../../constructs/version";
import { runIn } from "../io.testing";
import { leadsSomewhere } from "../links.testing";
import { said } from "./cluster.testing";
import type { NodeObject } from "./objects";
import { platformOf } from "./platform";
import { type Before, prepare } from "./pre";

type Info = NonNullable<NonNullable<NodeObject["status"]>["nodeInfo"]>;

const node = (name: string, nodeInfo: Info = {}, labels: Record<string, string> = {}, providerID = ""): NodeObject => ({
  metadata: { name, labels },
  spec: { providerID },
  status: { nodeInfo, conditions: [{ type: "Ready", status: "True" }] },
});

const recognized: readonly (readonly [string | undefined, NodeObject])[] = [
  [undefined, node("a", { kubeletVersion: "v1.34.4", osImage: "Ubuntu 24.04 LTS" })],
  ["talos", node("a", { osImage: "Talos (v1.9.0)" }, { "eks.amazonaws.com/nodegroup": "a" })],
  ["bottlerocket", node("a", { osImage: "Bottlerocket OS 1.30.0 (aws-k8s-1.31)", kubeletVersion: "v1.31.4-eks-a" })],
  ["openshift", node("a", { osImage: "Red Hat Enterprise Linux CoreOS 418.94.2025" })],
  ["openshift", node("a", {}, { "node.openshift.io/os_id": "rhcos" })],
  ["gke", node("a", { kubeletVersion: "v1.31.5-gke.1169000" })],
  ["aks", node("a", {}, { "kubernetes.azure.com/cluster": "mc" })],
  ["eks", node("a", { kubeletVersion: "v1.31.4-eks-aeac579" })],
  ["k3s", node("a", { kubeletVersion: "v1.32.1+k3s1" })],
  ["rke2", node("a", { kubeletVersion: "v1.32.1+rke2r1" })],
  ["microk8s", node("a", {}, { "microk8s.io/cluster": "true" })],
  ["minikube", node("a", {}, { "minikube.k8s.io/name": "minikube" })],
  ["kind", node("a", {}, {}, "kind://docker/kind/kind-control-plane")],
];

test.each(recognized)("a node of %s", (platform, given) => {
  expect(platformOf(given)).toBe(platform);
});

test.each(PLATFORM_NAMES)("an example of a node of %s", (platform) => {
  expect(recognized.map(([name]) => name)).toContain(platform);
});

const before = (given: Partial<Before> = {}): Before => ({
  namespace: "linkerd-cni",
  nodes: { value: [node("a")] },
  namespaceObject: { value: undefined },
  daemonSet: { value: undefined },
  cilium: { value: undefined },
  multus: { value: undefined },
  multusDaemons: [],
  runtimeClasses: { value: [] },
  refused: [],
  ...given,
});
const nodes = (...value: NodeObject[]) => ({ nodes: { value } });
const k3s = (version: string) => node(version, { kubeletVersion: `${version}+k3s1` });

const withMultus = (config?: object): Partial<Before> => ({
  multus: { value: { metadata: {} } },
  multusDaemons: [
    { value: undefined },
    { value: config && { data: { "daemon-config.json": JSON.stringify(config), other: "{" } } },
  ],
});
const openshift = nodes(node("a", {}, { "node.openshift.io/os_id": "rhcos" }));

const cilium = (data: Readonly<Record<string, string>>): Partial<Before> => ({
  cilium: { value: { data: { "cni-exclusive": "false", ...data } } },
});
const SOCKETS =
  "warning: Cilium's load balancing at sockets is on in pods: the proxy sees the address of one pod in place of the Service's, and does not balance its requests";

/** A cluster, its findings, and its values. */
test.each<readonly [string, Partial<Before>, readonly string[], object]>([
  ["a usual one", {}, [], {}],
  ["GKE", nodes(node("gke-a", { kubeletVersion: "v1.31.5-gke.1" })), [], { platform: "gke" }],
  ["k3s", nodes(k3s("v1.31.2")), [], { platform: "k3s" }],
  [
    "an old k3s",
    nodes(k3s("v1.31.2"), k3s("v1.31.1")),
    [],
    { platform: "k3s", destCNIBinDir: "/var/lib/rancher/k3s/data/current/bin" },
  ],
  [
    "GKE Autopilot",
    nodes(node("gk3-a", { kubeletVersion: "v1.31.5-gke.1" })),
    ["error: not possible on node gk3-a: GKE Autopilot does not allow pods to write to the node"],
    {},
  ],
  [
    "pages of 64 KB on one node of two",
    nodes(node("a"), node("big", { kernelVersion: "5.14.0-427.el9.aarch64+64k", architecture: "arm64" })),
    [
      "warning: not possible on node big: its kernel 5.14.0-427.el9.aarch64+64k has pages of 64 KB, with which the image does not start",
    ],
    {},
  ],
  [
    "a kernel on which replies are not translated",
    nodes(node("a", { kernelVersion: "4.18.0-553.el8" }), node("old", { kernelVersion: "4.14.355-amzn2.x86_64" })),
    ["warning: node old: nf_tables of kernel 4.14.355-amzn2.x86_64 does not translate replies, as 4.18 and later do"],
    {},
  ],
  [
    "a kernel without statx",
    nodes(node("old", { kernelVersion: "3.10.0-1160.el7.x86_64" })),
    ["error: not possible on node old: its kernel 3.10.0-1160.el7.x86_64 is older than 4.11"],
    {},
  ],
  [
    "nodes with two pairs of directories",
    nodes(node("a"), node("b"), k3s("v1.34.1")),
    ["error: node v1.34.1 has other directories than the rest"],
    {},
  ],
  [
    "Cilium, alone",
    { cilium: { value: { data: {} } } },
    [
      "error: ConfigMap kube-system/cilium-config has cni-exclusive not set, which means true: Cilium removes what others write beside it, but for drop-ins, which the runtime of node a does not read",
    ],
    {},
  ],
  [
    "Cilium, alone, on nodes whose runtimes read drop-ins",
    {
      ...nodes(
        node("a", { containerRuntimeVersion: "containerd://2.2.9" }),
        node("b", { containerRuntimeVersion: "cri-o://1.34.0" }),
      ),
      cilium: { value: { data: { "cni-exclusive": "true" } } },
    },
    [],
    {},
  ],
  [
    "Cilium, alone, and one node of two whose runtime reads drop-ins",
    {
      ...nodes(
        node("a", { containerRuntimeVersion: "containerd://2.2.9" }),
        node("old", { containerRuntimeVersion: "containerd://1.7.28" }),
      ),
      cilium: { value: { data: { "cni-exclusive": "true" } } },
    },
    [
      "error: ConfigMap kube-system/cilium-config has cni-exclusive true: Cilium removes what others write beside it, but for drop-ins, which the runtime of node old does not read",
    ],
    {},
  ],
  ["Cilium beside others", { cilium: { value: { data: { "cni-exclusive": "false" } } } }, [], {}],
  ["Cilium in place of kube-proxy", cilium({ "kube-proxy-replacement": "true" }), [SOCKETS], {}],
  ["Cilium's load balancing at sockets", cilium({ "bpf-lb-sock": "true" }), [SOCKETS], {}],
  [
    "the same for the node alone",
    cilium({ "kube-proxy-replacement": "strict", "bpf-lb-sock-hostns-only": "true" }),
    [],
    {},
  ],
  [
    "kube-proxy replaced, but not at sockets",
    cilium({ "kube-proxy-replacement": "true", "bpf-lb-sock": "false" }),
    [],
    {},
  ],
  ["Multus without an auxiliary chain", withMultus({}), [], {}],
  [
    "Multus with an auxiliary chain",
    withMultus({ auxiliaryCNIChainName: "vendors", multusAutoconfigDir: "/host/etc/cni/net.d" }),
    [],
    { chaining: "auxiliary", "multus.auxiliaryChainDir": "/etc/cni/net.d/vendors" },
  ],
  [
    "OpenShift with an auxiliary chain",
    {
      ...openshift,
      ...withMultus({ auxiliaryCNIChainName: "vendor-cni-chain", multusAutoconfigDir: "/host/run/multus/cni/net.d" }),
    },
    [],
    { platform: "openshift" },
  ],
  [
    "OpenShift without an auxiliary chain",
    { ...openshift, ...withMultus({}) },
    [
      "warning: Multus' daemon has no auxiliaryCNIChainName, and the network operator reverts an edit of 00-multus.conf",
    ],
    { platform: "openshift", chained: "false" },
  ],
  [
    "OpenShift whose Multus may not be read",
    { ...openshift, ...withMultus(), multusDaemons: [{ problem: "(Forbidden)", forbidden: "configmaps" }] },
    ["warning: the configuration of Multus' daemon cannot be read, so that it may have no auxiliary chain"],
    { platform: "openshift" },
  ],
  [
    "gVisor and Kata Containers",
    {
      runtimeClasses: {
        value: [
          { metadata: { name: "gvisor" }, handler: "runsc" },
          { metadata: { name: "kata" }, handler: "kata-qemu" },
          { metadata: { name: "usual" }, handler: "runc" },
        ],
      },
    },
    ["warning: pods of RuntimeClass gvisor, kata have their own network stack, which the redirect does not reach"],
    {},
  ],
  [
    "Pod Security",
    { namespaceObject: { value: { metadata: { labels: { "pod-security.kubernetes.io/enforce": "restricted" } } } } },
    ["error: Pod Security enforces restricted in namespace linkerd-cni"],
    {},
  ],
  [
    "a user who may not install",
    { refused: ["daemonsets.apps", "configmaps"] },
    ["warning: not allowed to create daemonsets, configmaps in namespace linkerd-cni"],
    {},
  ],
  ["nodes that may not be read", { nodes: { problem: "(Forbidden)", forbidden: "nodes" } }, ["error: (Forbidden)"], {}],
])("before an installation on %s", (_, given, problems, values) => {
  const prepared = prepare(before(given));
  expect(said(prepared.findings)).toEqual(problems);
  expect(prepared.values).toEqual(values);
  for (const { problem, link } of prepared.findings) expect(problem === undefined || leadsSomewhere(link)).toBe(true);
});

test.each<readonly [readonly string[], string | undefined]>([
  [["containerd://2.1.4", "cri-o://1.34.0"], "add --set nri.enabled=true"],
  [["containerd://2.0.0"], "add --set nri.enabled=true"],
  [["containerd://1.7.23"], "add --set repairController.enabled=true"],
  [["containerd://2.1.4", "cri-o://1.29.1"], "add --set repairController.enabled=true"],
  [["docker://28.0.1"], "add --set repairController.enabled=true"],
  [[], undefined],
])("for runtimes %j it recommends: %s", (runtimes, detail) => {
  const own = runtimes.map((containerRuntimeVersion) => node("a", { containerRuntimeVersion }));
  const { findings } = prepare(before(own.length === 0 ? {} : nodes(...own)));
  expect(findings.find(({ what }) => what.startsWith("pods that start too early"))?.detail).toBe(detail);
});

describe("check --pre", () => {
  const kubectl = (args: readonly string[]) => {
    const [verb, kind, name] = args.filter((word) => !word.startsWith("-"));
    if (args.includes("--raw")) return { code: 0, out: '{"gitVersion":"v1.31.4+k3s1"}', err: "" };
    if (verb === "auth") return { code: 0, out: "yes\n", err: "" };
    const items =
      kind === "nodes"
        ? [node("a", { kubeletVersion: "v1.31.4+k3s1", containerRuntimeVersion: "containerd://1.7.23" })]
        : [];
    return { code: 0, out: name === undefined ? JSON.stringify({ items }) : "", err: "" };
  };

  test("prints the platform, its directories and the command", async () => {
    const { code, out } = await runIn({ programs: { kubectl } }, ["check", "--pre"]);
    expect(code).toBe(0);
    expect(out).toMatch(/√ platform k3s and k3d +1 node; v1\.31\.4\+k3s1, containerd 1\.7\.23; \/var\/lib\/rancher/);
    expect(out).toContain(
      `helm install linkerd-cni -n linkerd-cni --create-namespace ${chartReference("linkerd2-cni")} --set platform=k3s\n`,
    );
    expect(out).toContain("l5d-cni install-cni --cni-namespace linkerd-cni --set platform=k3s | kubectl apply -f -\n");
  });

  test("gives programs the values", async () => {
    const { out } = await runIn({ programs: { kubectl } }, ["check", "--pre", "-o", "json"]);
    expect(JSON.parse(out)).toMatchObject({ success: true, values: { platform: "k3s" } });
  });
});
