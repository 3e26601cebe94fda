import { readsDropins } from "../../cni/conflist/dropin";
import { NodePath } from "../../cni/contract";
import { DEFAULT_DIRECTORIES, PLATFORMS, type PlatformName } from "../../constructs/platforms";
import { chartReference } from "../../constructs/version";
import type { ConfigMapObject } from "../configuration";
import { type Kubectl, KubectlError } from "../kubectl";
import { docs, readme } from "../links";
import { commandLines, indented } from "../wrap";
import { notReady } from "./causes";
import { Category, type Finding } from "./finding";
import { type DaemonSet, isOurs, NAME, type Named, type NodeObject } from "./objects";
import { directoriesText, impossible, needsLegacy, platformOf, valuesFor } from "./platform";
import { known, type Read, read } from "./snapshot";

/** The checked fields of a RuntimeClass. */
export interface RuntimeClass extends Named {
  readonly handler?: string;
}

/** A cluster before the installation. */
export interface Before {
  readonly namespace: string;
  readonly nodes: Read<readonly NodeObject[]>;
  readonly namespaceObject: Read<Named | undefined>;
  readonly daemonSet: Read<DaemonSet | undefined>;
  /** Cilium's configuration, in kube-system. */
  readonly cilium: Read<{ readonly data?: Readonly<Record<string, string>> } | undefined>;
  readonly multus: Read<Named | undefined>;
  /** The configuration of Multus' daemons: that of Multus' own manifests, and OpenShift's. */
  readonly multusDaemons: readonly Read<ConfigMapObject | undefined>[];
  readonly runtimeClasses: Read<readonly RuntimeClass[]>;
  /** Kinds of the chart that the user may not create. */
  readonly refused: readonly string[];
}

/** The steps before an installation. */
export interface Preparation {
  readonly findings: readonly Finding[];
  /** The values to install with. */
  readonly values: Readonly<Record<string, string>>;
}

/** Of Multus' own manifests, and of OpenShift's network operator. */
const MULTUS_NAMESPACES = ["kube-system", "openshift-multus"] as const;

const KINDS = ["daemonsets.apps", "configmaps", "serviceaccounts", "clusterroles.rbac.authorization.k8s.io"];

/** Whether the API server allows the user to create a kind of object; a failed request is not a problem. */
async function mayCreate(kubectl: Kubectl, kind: string, namespace: string): Promise<boolean> {
  try {
    return (await kubectl.run("auth", "can-i", "create", kind, `--namespace=${namespace}`)).includes("yes");
  } catch (error) {
    if (error instanceof KubectlError) return false;
    throw error;
  }
}

/** Reads the data for the checks before an installation. */
export async function readBefore(kubectl: Kubectl, namespace: string): Promise<Before> {
  const get = <T>(kind: string, name: string, where?: string) =>
    read(kind, kubectl.get<T>({ kind, name, ...(where === undefined ? {} : { namespace: where }) }));
  const [nodes, namespaceObject, daemonSet, cilium, multus, runtimeClasses, allowed, ...multusDaemons] =
    await Promise.all([
      read("nodes", kubectl.list<NodeObject>({ kind: "nodes" })),
      get<Named>("namespace", namespace),
      get<DaemonSet>("daemonset", NAME, namespace),
      get<{ data?: Record<string, string> }>("configmap", "cilium-config", "kube-system"),
      get<Named>("customresourcedefinitions", "network-attachment-definitions.k8s.cni.cncf.io"),
      read("runtimeclasses", kubectl.list<RuntimeClass>({ kind: "runtimeclasses.node.k8s.io" })),
      Promise.all(KINDS.map((kind) => mayCreate(kubectl, kind, namespace))),
      ...MULTUS_NAMESPACES.map((where) => get<ConfigMapObject>("configmap", "multus-daemon-config", where)),
    ]);
  const refused = KINDS.filter((_, index) => allowed[index] !== true);
  return { namespace, nodes, namespaceObject, daemonSet, cilium, multus, multusDaemons, runtimeClasses, refused };
}

const category = new Category("linkerd-cni-pre");
const HOSTS = readme("hosts");
const PRE = docs("cli.md#before-an-installation");

const count = (nodes: readonly unknown[]) => `${nodes.length} ${nodes.length === 1 ? "node" : "nodes"}`;
const namesOf = (nodes: readonly NodeObject[]) =>
  `node${nodes.length === 1 ? "" : "s"} ${nodes
    .slice(0, 3)
    .map(({ metadata }) => metadata.name)
    .join(", ")}${nodes.length > 3 ? ` and ${nodes.length - 3} more` : ""}`;

function grouped<K>(
  nodes: readonly NodeObject[],
  keyOf: (node: NodeObject) => K,
): ReadonlyMap<K, readonly NodeObject[]> {
  const groups = new Map<K, NodeObject[]>();
  for (const node of nodes) groups.set(keyOf(node), [...(groups.get(keyOf(node)) ?? []), node]);
  return groups;
}

const versionsOf = (nodes: readonly NodeObject[]) => {
  const told = nodes.flatMap(({ status }) => {
    const { kubeletVersion, containerRuntimeVersion } = status?.nodeInfo ?? {};
    return [kubeletVersion, containerRuntimeVersion?.replace("://", " ")].filter((each) => each !== undefined);
  });
  return [...new Set(told)].join(", ");
};

/** Nodes that cannot have the plugin with any values. */
function impossibleFindings(nodes: readonly NodeObject[]): readonly Finding[] {
  const groups = [...grouped(nodes, impossible)].flatMap(([why, own]) => (why === undefined ? [] : [{ why, own }]));
  return groups.map(({ why, own }) => {
    const trouble = {
      problem: `not possible on ${namesOf(own)}: ${why}`,
      remedy:
        own.length === nodes.length
          ? "there, let linkerd-init set the rules: install Linkerd without --linkerd-cni-enabled"
          : "keep meshed pods off these nodes, and the DaemonSet by the chart's nodeAffinity",
      link: PRE,
    };
    const what = "every node can have the plugin";
    return own.length === nodes.length ? category.bad(what, trouble) : category.odd(what, trouble);
  });
}

/** Nodes on which mode auto is legacy iptables. */
function kernelFindings(nodes: readonly NodeObject[]): readonly Finding[] {
  return [...grouped(nodes, needsLegacy)].flatMap(([why, own]) =>
    why === undefined
      ? []
      : [
          category.odd("every node redirects without iptables", {
            problem: `${namesOf(own)}: ${why}`,
            remedy:
              "leave iptablesMode as it is, and install iptables-legacy there, which the plugin then uses; or update the kernel",
            link: HOSTS,
          }),
        ],
  );
}

function platformFindings(nodes: readonly NodeObject[]): Preparation {
  const groups = [...grouped(nodes, platformOf)];
  const findings = groups.map(([platform, own]) =>
    category.good(
      platform === undefined
        ? "no platform with a preset is known: the usual directories"
        : `platform ${PLATFORMS[platform].title}`,
      [
        count(own),
        versionsOf(own),
        platform === undefined
          ? `${DEFAULT_DIRECTORIES.destCNINetDir} and ${DEFAULT_DIRECTORIES.destCNIBinDir}`
          : directoriesText(platform),
      ]
        .filter((part) => part !== "")
        .join("; "),
    ),
  );
  const [[platform, own] = [undefined, []]] = [...groups].sort(([, a], [, b]) => b.length - a.length);
  const directories = (of: PlatformName | undefined) => {
    const { destCNINetDir, destCNIBinDir } = of === undefined ? DEFAULT_DIRECTORIES : PLATFORMS[of];
    return `${destCNINetDir} ${destCNIBinDir}`;
  };
  const strange = groups.filter(([other]) => directories(other) !== directories(platform)).flatMap(([, each]) => each);
  const trouble = {
    problem: `${namesOf(strange)} ${strange.length === 1 ? "has" : "have"} other directories than the rest`,
    remedy:
      "keep the DaemonSet and meshed pods off them (nodeAffinity): one installation knows one pair of directories",
    link: HOSTS,
  };
  return {
    findings: [
      ...findings,
      ...(strange.length === 0 ? [] : [category.bad("all nodes have the same directories", trouble)]),
    ],
    values: platform === undefined ? {} : valuesFor(platform, own),
  };
}

function ciliumFindings({ cilium, nodes }: Before): readonly Finding[] {
  const found = known(cilium);
  if (found === undefined) return [];
  const what = "Cilium does not change what others write";
  const exclusive = found.data?.["cni-exclusive"];
  if (exclusive === "false") return [category.good(what, "cni-exclusive is false")];
  // It removes files, not folders.
  const others = (known(nodes) ?? []).filter(({ status }) => !readsDropins(status?.nodeInfo?.containerRuntimeVersion));
  if (others.length === 0 && known(nodes) !== undefined) {
    return [category.good(what, "it does not change drop-ins, which every node's runtime reads")];
  }
  const unread = others.length === 0 ? "" : `, but for drop-ins, which the runtime of ${namesOf(others)} does not read`;
  return [
    category.bad(what, {
      // Cilium's default.
      problem: `ConfigMap kube-system/cilium-config has cni-exclusive ${exclusive ?? "not set, which means true"}: Cilium removes what others write beside it${unread}`,
      remedy:
        "set cni.exclusive=false in Cilium's values, and restart its agents; or have containerd 2.1, CRI-O 1.34 or later on every node",
      link: PRE,
    }),
  ];
}

/** Cilium's load balancing at sockets, which replaces a Service's address before the redirect sees the connection. */
function socketFindings({ cilium }: Before): readonly Finding[] {
  const data = known(cilium)?.data;
  const replaces = ["true", "strict"].includes(data?.["kube-proxy-replacement"] ?? "");
  const isOn = (data?.["bpf-lb-sock"] ?? String(replaces)) === "true";
  if (!isOn || data?.["bpf-lb-sock-hostns-only"] === "true") return [];
  return [
    category.odd("Cilium leaves the addresses of Services to the proxy", {
      problem:
        "Cilium's load balancing at sockets is on in pods: the proxy sees the address of one pod in place of the Service's, and does not balance its requests",
      remedy: "set socketLB.hostNamespaceOnly=true in Cilium's values, and restart its agents",
      link: docs("hosts.md#cilium"),
    }),
  ];
}

/** The first version of each runtime that has NRI on by default. */
const NRI_SINCE: Readonly<Record<string, readonly [major: number, minor: number]>> = {
  containerd: [2, 0],
  "cri-o": [1, 30],
};

function hasNri({ status }: NodeObject): boolean {
  const [, runtime = "", ...numbers] =
    /^([\w-]+):\/\/v?(\d+)\.(\d+)/.exec(status?.nodeInfo?.containerRuntimeVersion ?? "") ?? [];
  const [major = 0, minor = 0] = numbers.map(Number);
  const since = NRI_SINCE[runtime];
  return since !== undefined && (major > since[0] || (major === since[0] && minor >= since[1]));
}

/** The repair of pods that start before the plugin is installed. */
function repairFindings(nodes: readonly NodeObject[]): readonly Finding[] {
  if (!nodes.some(({ status }) => status?.nodeInfo?.containerRuntimeVersion !== undefined)) return [];
  if (!nodes.every(hasNri)) {
    const how = "add --set repairController.enabled=true";
    return [category.good("pods that start too early can be replaced", how)];
  }
  return [category.good("pods that start too early can be repaired in place", "add --set nri.enabled=true")];
}

function sandboxFindings({ runtimeClasses }: Before): readonly Finding[] {
  const own = (known(runtimeClasses) ?? []).filter(({ handler = "" }) => /runsc|gvisor|kata/i.test(handler));
  if (own.length === 0) return [];
  const names = own.map(({ metadata }) => metadata.name).join(", ");
  return [
    category.odd("every pod has the network stack of its node", {
      problem: `pods of RuntimeClass ${names} have their own network stack, which the redirect does not reach`,
      remedy: "keep meshed pods off these RuntimeClasses",
      link: docs("hosts.md#sandboxes-of-their-own"),
    }),
  ];
}

function namespaceFindings({ namespace, namespaceObject }: Before): readonly Finding[] {
  const level = known(namespaceObject)?.metadata.labels?.["pod-security.kubernetes.io/enforce"];
  const what = `namespace ${namespace} allows pods that write to the node`;
  if (level === undefined || level === "privileged") return [category.good(what)];
  return [
    category.bad(what, {
      problem: `Pod Security enforces ${level} in namespace ${namespace}`,
      remedy: `kubectl label namespace ${namespace} pod-security.kubernetes.io/enforce=privileged --overwrite`,
      link: docs("cli.md#nodes"),
    }),
  ];
}

function installedFindings({ namespace, daemonSet }: Before): readonly Finding[] {
  const found = known(daemonSet);
  if (found === undefined) return [];
  const what = "nothing is installed yet";
  if (!isOurs(found)) {
    return [category.good("linkerd's own chart is installed", "helm upgrade with this project's chart replaces it")];
  }
  return [
    category.odd(what, {
      problem: `DaemonSet ${namespace}/${NAME} is there`,
      remedy: "see its state: l5d-cni check, without --pre",
      link: docs("cli.md#check"),
    }),
  ];
}

interface MultusDaemon {
  readonly auxiliaryCNIChainName?: string;
  /** Where it looks for the configuration of the pods' network. */
  readonly multusAutoconfigDir?: string;
}

function parsed(text: string): MultusDaemon {
  try {
    return JSON.parse(text) as MultusDaemon;
  } catch {
    return {};
  }
}

/** The folder on the node with the auxiliary chain of Multus, if its daemon has one. */
function auxiliaryDir({ multusDaemons }: Before): string | undefined {
  const daemons = multusDaemons.flatMap((each) => Object.values(known(each)?.data ?? {}).map(parsed));
  const found = daemons.find(({ auxiliaryCNIChainName: name }) => name !== undefined && name !== "");
  // The daemon's container sees the node's directories below /host.
  const directory = (found?.multusAutoconfigDir ?? `/host${DEFAULT_DIRECTORIES.destCNINetDir}`).replace(
    /^\/host(?=\/)/,
    "",
  );
  return found && `${directory}/${found.auxiliaryCNIChainName}`;
}

/** The possible way under Multus, and its values. */
function multusPreparation(before: Before, platform: PlatformName | undefined): Preparation {
  if (known(before.multus) === undefined) return { findings: [], values: {} };
  const directory = auxiliaryDir(before);
  const preset = platform === undefined ? undefined : PLATFORMS[platform].chaining;
  if (directory !== undefined) {
    const values = {
      ...(preset === undefined ? { chaining: "auxiliary" } : {}),
      ...(directory === NodePath.auxiliaryChainDir ? {} : { "multus.auxiliaryChainDir": directory }),
    };
    return { findings: [category.good("Multus is installed, with an auxiliary chain", directory)], values };
  }
  if (preset === undefined) {
    const how = "if container runtimes call only Multus, add --set chained=false and install the chart linkerd-multus";
    return { findings: [category.good("Multus is installed", how)], values: {} };
  }
  const isReadable = before.multusDaemons.every((each) => "value" in each);
  const trouble = {
    problem: isReadable
      ? "Multus' daemon has no auxiliaryCNIChainName, and the network operator reverts an edit of 00-multus.conf"
      : "the configuration of Multus' daemon cannot be read, so that it may have no auxiliary chain",
    remedy: "update OpenShift to 4.22; before, set chained=false and install the chart linkerd-multus",
    link: docs("multus.md"),
  };
  return {
    findings: [category.odd("Multus has an auxiliary chain", trouble)],
    values: isReadable ? { chained: "false" } : {},
  };
}

function accessFindings({ refused, namespace }: Before): readonly Finding[] {
  const what = "the user may install";
  if (refused.length === 0) return [category.good(what)];
  return [
    category.odd(what, {
      problem: `not allowed to create ${refused.map((kind) => kind.replace(/\..*/, "")).join(", ")} in namespace ${namespace}`,
      remedy: "install as a user who may",
      link: docs("cli.md#who-asks"),
    }),
  ];
}

/** Nodes without a network, on which the installer waits for one. */
function networkFindings(nodes: readonly NodeObject[]): readonly Finding[] {
  return nodes.flatMap((node) => {
    const problem = notReady(node);
    if (problem === undefined) return [];
    const remedy = "install a primary CNI before, or with it: the installer waits for its configuration";
    return [category.odd(`node ${node.metadata.name} is ready`, { problem, remedy, link: docs("cli.md#nodes") })];
  });
}

/** The findings before an installation. Pure: no I/O, no clock. */
export function prepare(before: Before): Preparation {
  const { nodes: all } = before;
  if ("problem" in all) {
    const trouble = { problem: all.problem, remedy: "ask as a user who may read it", link: docs("cli.md#who-asks") };
    return { findings: [category.bad("the nodes tell their platform", trouble)], values: {} };
  }
  const nodes = all.value.filter(({ metadata }) => metadata.labels?.["kubernetes.io/os"] !== "windows");
  const possible = nodes.filter((node) => impossible(node) === undefined);
  const platform = platformFindings(possible);
  const multus = multusPreparation(before, platform.values["platform"] as PlatformName | undefined);
  return {
    findings: [
      ...impossibleFindings(nodes),
      ...kernelFindings(possible),
      ...platform.findings,
      ...networkFindings(possible),
      ...ciliumFindings(before),
      ...socketFindings(before),
      ...sandboxFindings(before),
      ...repairFindings(possible),
      ...namespaceFindings(before),
      ...installedFindings(before),
      ...multus.findings,
      ...accessFindings(before),
    ],
    values: { ...platform.values, ...multus.values },
  };
}

/** The command that installs with these values. */
export function installText(values: Preparation["values"], namespace: string, columns?: number): string {
  const command = (text: string) => commandLines(text, 2, columns);
  const set = Object.entries(values)
    .map(([name, value]) => ` --set ${name}=${value}`)
    .join("");
  const note = PLATFORMS[values["platform"] as PlatformName]?.note;
  return [
    "",
    "Install with:",
    ...command(`helm install linkerd-cni -n ${namespace} --create-namespace ${chartReference("linkerd2-cni")}${set}`),
    "or",
    ...command(`l5d-cni install-cni --cni-namespace ${namespace}${set} | kubectl apply -f -`),
    ...(note === undefined ? [] : indented(`Mind: ${note}.`, 0, columns)),
    "",
  ].join("\n");
}
