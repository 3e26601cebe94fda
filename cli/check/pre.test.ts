import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { PLATFORM_NAMES } from "../../constructs/platforms";
import { chartReference } from "../../constructs/version";
import { runIn } from "../io.testing";
import { leadsSomewhere } from "../links.testing";
import { said } from "./cluster.testing";
import type { NodeObject } from "./objects";
import { lacksAnnotations, platformOf } from "./platform";
import { type Before, installText, prepare } from "./pre";

type Info = NonNullable<NonNullable<NodeObject["status"]>["nodeInfo"]>;

const node = (name: string, nodeInfo: Info = {}, labels: Record<string, string> = {}, providerID = ""): NodeObject => ({
  metadata: { name, labels },
  spec: { providerID },
  status: {
    nodeInfo: { containerRuntimeVersion: "containerd://1.7.28", ...nodeInfo },
    conditions: [{ type: "Ready", status: "True" }],
  },
});

const recognized: readonly (readonly [string | undefined, NodeObject])[] = [
  [undefined, node("a", { kubeletVersion: "v1.34.4", osImage: "Ubuntu 24.04 LTS" })],
  ["talos", node("a", { osImage: "Talos (v1.9.0)" }, { "eks.amazonaws.com/nodegroup": "a" })],
  ["bottlerocket", node("a", { osImage: "Bottlerocket OS 1.30.0 (aws-k8s-1.31)", kubeletVersion: "v1.31.4-eks-a" })],
  ["openshift", node("a", { osImage: "Red Hat Enterprise Linux CoreOS 418.94.2025" })],
  ["openshift", node("a", {}, { "node.openshift.io/os_id": "rhcos" })],
  [undefined, node("a", {}, { "node.openshift.io/os_id": "rhel" })],
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

test.each([
  ["docker://27.0.1", true],
  ["containerd://1.4.12-k3s1", true],
  ["containerd://1.5.0", false],
  ["containerd://v2.1.3-k3s1", false],
  ["cri-o://1.28.4", true],
  ["cri-o://1.29.0", false],
  ["", false],
])("%s passes no annotations to plugins: %s", (containerRuntimeVersion, expected) =>
  expect(lacksAnnotations(node("a", { containerRuntimeVersion }))).toBe(expected),
);

const before = (given: Partial<Before> = {}): Before => ({
  namespace: "linkerd-cni",
  nodes: { value: [node("a")] },
  namespaceObject: { value: undefined },
  daemonSet: { value: undefined },
  cilium: { value: undefined },
  multus: { value: undefined },
  multusDaemons: [],
  multusSet: { value: undefined },
  runtimeClasses: { value: [] },
  ...given,
});
const nodes = (...value: NodeObject[]) => ({ nodes: { value } });

const UNNAMED = "does not pass annotations to plugins, so every pod waits while the installer of its node does not run";
const BEHIND_MULTUS = `warning: Multus ${UNNAMED}`;

const FIXTURES = join(__dirname, "..", "..", "test", "fixtures", "nodes");
const K3S_NET = "/var/lib/rancher/k3s/agent/etc/cni/net.d";
const FLANNEL =
  "if the servers run with --flannel-backend=none, which no annotation k3s.io/node-args of a server shows, /etc/cni/net.d and /opt/cni/bin";
const notKnown = (name: string, title: string, why: string) => `warning: node ${name} (${title}): not known: ${why}`;

/** Nodes as `kubectl get nodes -o json` prints them, the problems, and the values. */
const hosts: Readonly<Record<string, readonly [values: object, ...problems: readonly string[]]>> = {
  "aks-ubuntu": [
    { platform: "aks" },
    "warning: not possible on node virtual-node-aci-linux: no pod of the installer starts on a virtual node (type=virtual-kubelet), and a rollout waits for it",
  ],
  "eks-al2023": [{ platform: "eks" }],
  "eks-bottlerocket-1.32": [{ platform: "bottlerocket" }],
  "eks-fargate": [
    { platform: "eks" },
    "warning: not possible on node fargate-ip-10-0-2-99.eu-central-1.compute.internal: Fargate does not run DaemonSets",
  ],
  "gke-autopilot": [
    {},
    "error: not possible on node gk3-a-pool-1-0a1b2c3d-4e5f: GKE Autopilot does not allow pods to write to the node",
  ],
  "gke-cos": [{ platform: "gke" }],
  k0s: [{}],
  "k3d-1.30.4": [
    { platform: "k3s", destCNIBinDir: "/bin" },
    `warning: node k3d-a-server-0 (k3s in a container, as k3d runs it): likely ${K3S_NET} and /bin; ${FLANNEL}`,
  ],
  "k3d-1.31.4": [
    { platform: "k3s", destCNIBinDir: "/bin" },
    `warning: node k3d-dev-server-0 (k3s in a container, as k3d runs it): likely ${K3S_NET} and /bin; ${FLANNEL}`,
  ],
  "k3d-1.32.3": [{ platform: "k3s" }],
  "k3s-1.34": [{ platform: "k3s" }],
  "k3s-calico-agents": [{}],
  "k3s-cilium": [{}],
  "k3s-data-dir": [
    { platform: "k3s", destCNINetDir: "/srv/k3s/agent/etc/cni/net.d", destCNIBinDir: "/srv/k3s/data/cni" },
  ],
  "k3s-docker": [
    {},
    `warning: the container runtime of node s1 ${UNNAMED}`,
    notKnown(
      "s1",
      "k3s with another container runtime",
      "k3s does not configure docker://28.3.3, which is not its own",
    ),
  ],
  "k3s-old": [
    {},
    `warning: node k1 (k3s and k3d): likely ${K3S_NET} and /var/lib/rancher/k3s/data/current/bin; ${FLANNEL}`,
    `warning: node k2 (k3s and k3d): likely ${K3S_NET} and /var/lib/rancher/k3s/data/cni; ${FLANNEL}`,
    `error: one installation has one pair of directories: node k1 has ${K3S_NET} and /var/lib/rancher/k3s/data/current/bin; node k2 has ${K3S_NET} and /var/lib/rancher/k3s/data/cni`,
  ],
  "k3s-one-old-release": [{ platform: "k3s", destCNIBinDir: "/var/lib/rancher/k3s/data/current/bin" }],
  "kubeadm-crio": [
    {},
    notKnown("n1", "no platform with a preset", "each distribution configures cri-o://1.34.0 with its own directories"),
  ],
  kwok: [
    {},
    "warning: not possible on node kwok-0: no pod of the installer starts on a virtual node (type=kwok), and a rollout waits for it",
  ],
  liqo: [
    {},
    "warning: not possible on node liqo-milan: no pod of the installer starts on a virtual node (liqo.io/type=virtual-node), and a rollout waits for it",
  ],
  microk8s: [{ platform: "microk8s" }],
  "microshift-4.18": [
    {},
    notKnown(
      "edge.example.com",
      "no platform with a preset",
      "each distribution configures cri-o://1.31.5-2.rhaos4.18.git2f66c8f.el9 with its own directories",
    ),
  ],
  "okd-4.17": [{ platform: "openshift" }],
  "openshift-4.18": [{ platform: "openshift" }],
  "openshift-rhel-worker": [{ platform: "openshift" }, `warning: the container runtime of node worker-1 ${UNNAMED}`],
  "rancher-desktop": [
    {},
    notKnown(
      "lima-rancher-desktop",
      "k3s with another container runtime",
      "k3s does not configure containerd://2.1.4, which is not its own",
    ),
  ],
  "rke2-1.31": [{ platform: "rke2" }],
  "talos-1.11": [{ platform: "talos" }],
  "talos-1.14": [{ platform: "talos" }],
};

const listed = (name: string) => JSON.parse(readFileSync(join(FIXTURES, `${name}.json`), "utf8")).items;

test("every list of nodes has its expectation", () => {
  expect(readdirSync(FIXTURES).sort()).toEqual(
    Object.keys(hosts)
      .map((name) => `${name}.json`)
      .sort(),
  );
});

test.each(Object.entries(hosts))("the nodes %s", (name, [values, ...problems]) => {
  const prepared = prepare(before(nodes(...listed(name))));
  expect(said(prepared.findings)).toEqual(problems);
  expect(prepared.values).toEqual(values);
});

/** An annotation k3s.io/node-args, and whether it turns Flannel off. */
test.each([
  ['["server","--flannel-backend","none"]', true],
  ['["server","--flannel-backend=none"]', true],
  ['["server","--flannel-backend","none","--flannel-backend","vxlan"]', false],
  ['["server","--flannel-backend"]', false],
  ['["server"]', false],
  ['{"a":1}', false],
  ["[", false],
])("the flags %s of k3s", (args, isOff) => {
  const [server, agent] = listed("k3s-1.34");
  const changed = { ...server, metadata: { ...server.metadata, annotations: { "k3s.io/node-args": args } } };
  expect(prepare(before(nodes(changed, agent))).values).toEqual(isOff ? {} : { platform: "k3s" });
});

const withMultus = (config?: object): Partial<Before> => ({
  multus: { value: { metadata: {} } },
  multusDaemons: [
    { value: undefined },
    { value: config && { data: { "daemon-config.json": JSON.stringify(config), other: "{" } } },
  ],
});
const multusSet = (command: string) => ({
  value: { metadata: {}, spec: { template: { spec: { initContainers: [{ name: "install", command: [command] }] } } } },
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
  [
    "GKE Autopilot",
    nodes(node("gk3-a", { kubeletVersion: "v1.31.5-gke.1" })),
    ["error: not possible on node gk3-a: GKE Autopilot does not allow pods to write to the node"],
    {},
  ],
  [
    "pages of 64 KB",
    nodes(node("big", { kernelVersion: "5.14.0-427.el9.aarch64+64k", architecture: "arm64" })),
    [],
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
    nodes(node("a"), node("b"), node("g", { kubeletVersion: "v1.31.5-gke.1" })),
    [
      "error: one installation has one pair of directories: nodes a, b have /etc/cni/net.d and /opt/cni/bin; node g has /etc/cni/net.d and /home/kubernetes/bin",
    ],
    {},
  ],
  [
    "Cilium, alone",
    { cilium: { value: { data: {} } } },
    [
      "error: ConfigMap kube-system/cilium-config has cni-exclusive not set, which means true: Cilium removes what others write beside it, except drop-ins, which the runtime of node a does not read",
    ],
    {},
  ],
  [
    "Cilium, alone, on nodes whose runtimes read drop-ins",
    {
      ...nodes(
        node("a", { containerRuntimeVersion: "containerd://2.2.9" }),
        node("b", { containerRuntimeVersion: "containerd://2.1.0" }),
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
      "error: ConfigMap kube-system/cilium-config has cni-exclusive true: Cilium removes what others write beside it, except drop-ins, which the runtime of node old does not read",
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
    // As Cilium's chart writes it: its agent turns it on all the same.
    "Cilium in place of kube-proxy, as its chart writes it",
    cilium({ "kube-proxy-replacement": "true", "bpf-lb-sock": "false" }),
    [SOCKETS],
    {},
  ],
  [
    "runtimes that pass no annotations to plugins",
    nodes(
      node("a"),
      node("b", { containerRuntimeVersion: "docker://27.0.1" }),
      node("c", { containerRuntimeVersion: "containerd://1.4.12-k3s1" }),
    ),
    [`warning: the container runtime of nodes b, c ${UNNAMED}`],
    {},
  ],
  ["Multus without an auxiliary chain", withMultus({}), [BEHIND_MULTUS], {}],
  [
    "Multus with an auxiliary chain",
    withMultus({ auxiliaryCNIChainName: "vendors", multusAutoconfigDir: "/host/etc/cni/net.d" }),
    [BEHIND_MULTUS, "warning: not known: no DaemonSet kube-system/kube-multus-ds shows whether it is on the nodes"],
    { chaining: "auxiliary", "multus.auxiliaryChainDir": "/etc/cni/net.d/vendors" },
  ],
  [
    "Multus with an auxiliary chain, and its plugin",
    { ...withMultus({ auxiliaryCNIChainName: "vendors" }), multusSet: multusSet("cp multus-shim passthru /host") },
    [BEHIND_MULTUS],
    { chaining: "auxiliary", "multus.auxiliaryChainDir": "/etc/cni/net.d/vendors" },
  ],
  [
    "Multus with an auxiliary chain, by a manifest without its plugin",
    { ...withMultus({ auxiliaryCNIChainName: "vendors" }), multusSet: multusSet("cp multus-shim /host") },
    [BEHIND_MULTUS, "warning: DaemonSet kube-system/kube-multus-ds does not install it"],
    { chaining: "auxiliary", "multus.auxiliaryChainDir": "/etc/cni/net.d/vendors" },
  ],
  [
    "OpenShift with an auxiliary chain",
    {
      ...openshift,
      ...withMultus({ auxiliaryCNIChainName: "vendor-cni-chain", multusAutoconfigDir: "/host/run/multus/cni/net.d" }),
    },
    [BEHIND_MULTUS, "warning: not known: no DaemonSet kube-system/kube-multus-ds shows whether it is on the nodes"],
    { platform: "openshift" },
  ],
  [
    "OpenShift without an auxiliary chain",
    { ...openshift, ...withMultus({}) },
    [
      BEHIND_MULTUS,
      "warning: Multus' daemon has no auxiliaryCNIChainName, and the network operator reverts an edit of 00-multus.conf",
    ],
    { platform: "openshift", chained: "false" },
  ],
  [
    "OpenShift whose Multus may not be read",
    { ...openshift, ...withMultus(), multusDaemons: [{ problem: "(Forbidden)", forbidden: "configmaps" }] },
    [
      BEHIND_MULTUS,
      "warning: the configuration of Multus' daemon cannot be read, so that it may have no auxiliary chain",
    ],
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
    "a namespace that may not be read",
    { namespaceObject: { problem: "(Forbidden)", forbidden: "namespaces" } },
    ["warning: not known: (Forbidden)"],
    {},
  ],
  ["nodes that may not be read", { nodes: { problem: "(Forbidden)", forbidden: "nodes" } }, ["error: (Forbidden)"], {}],
])("before an installation on %s", (_, given, problems, values) => {
  const prepared = prepare(before(given));
  expect(said(prepared.findings)).toEqual(problems);
  expect(prepared.values).toEqual(values);
  for (const { problem, link } of prepared.findings) expect(problem === undefined || leadsSomewhere(link)).toBe(true);
});

/** The namespace, and what is said about it. */
test.each<readonly [Record<string, string> | undefined, string, boolean]>([
  [undefined, "namespace linkerd-cni is not there yet", false],
  [{}, "namespace linkerd-cni allows pods that write to the node", true],
])("with a namespace labelled %j: %s", (labels, what, hasNamespace) => {
  const value = labels && { metadata: { name: "linkerd-cni", labels } };
  const prepared = prepare(before({ namespaceObject: { value } }));
  expect(prepared.findings.map((finding) => finding.what)).toContain(what);
  expect(prepared.hasNamespace).toBe(hasNamespace);
});

test("the commands to install name the directories to fill in if they are not known", () => {
  const text = (name: string) => installText(prepare(before(nodes(...listed(name)))), "linkerd-cni");
  const fillIn = "--set destCNINetDir=CONF_DIR --set destCNIBinDir=BIN_DIR";
  expect(text("rancher-desktop").split(fillIn)).toHaveLength(3);
  expect(text("k3s-cilium")).not.toContain("--set");
});

describe("check --pre", () => {
  const kubectl = (args: readonly string[]) => {
    const [, kind, name] = args.filter((word) => !word.startsWith("-"));
    if (args.includes("--raw")) return { code: 0, out: '{"gitVersion":"v1.31.4+k3s1"}', err: "" };
    const items = kind === "nodes" ? listed("k3s-1.34") : [];
    return { code: 0, out: name === undefined ? JSON.stringify({ items }) : "", err: "" };
  };

  test("prints the platform, its directories and the command", async () => {
    const { code, out } = await runIn({ programs: { kubectl } }, ["check", "--pre"]);
    expect(code).toBe(0);
    expect(out).toMatch(
      /√ platform k3s and k3d: 2 nodes; v1\.34\.1\+k3s1, containerd 2\.1\.4-k3s2; \/var\/lib\/rancher/,
    );
    const labels = "config.linkerd.io/admission-webhooks=disabled pod-security.kubernetes.io/enforce=privileged";
    expect(out).toContain(
      [
        "Install with:",
        "kubectl create namespace linkerd-cni",
        `kubectl label namespace linkerd-cni --overwrite ${labels}`,
        `helm install linkerd-cni -n linkerd-cni ${chartReference("linkerd2-cni")} --set platform=k3s`,
        "or",
      ]
        .join("\n  ")
        .replace("\n  or", "\nor"),
    );
    expect(out).toContain("l5d-cni install-cni --cni-namespace linkerd-cni --set platform=k3s | kubectl apply -f -\n");
  });

  test("gives programs the values", async () => {
    const { out } = await runIn({ programs: { kubectl } }, ["check", "--pre", "-o", "json"]);
    expect(JSON.parse(out)).toMatchObject({ success: true, values: { platform: "k3s" } });
  });
});
