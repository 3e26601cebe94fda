import { NodePath } from "../../cni/contract";
import { readsDropins } from "../../cni/runtime";
import { NAMESPACE_LABELS } from "../../constructs/namespace";
import { DEFAULT_DIRECTORIES, PLATFORMS } from "../../constructs/platforms";
import { chartReference } from "../../constructs/version";
import type { ConfigMapObject } from "../configuration";
import type { Kubectl } from "../kubectl";
import { docs } from "../links";
import { unreadable } from "./access";
import { notReady } from "./causes";
import { Category, type Finding } from "./finding";
import { type DaemonSet, isOurs, NAME, type Named, type NodeObject } from "./objects";
import {
  directoriesText,
  type Host,
  hostJudge,
  impossible,
  lacksAnnotations,
  needsLegacy,
  valuesFor,
} from "./platform";
import { all, known, type Read, read } from "./snapshot";

/** A cluster before the installation. */
export interface Before {
  readonly namespace: string;
  readonly nodes: Read<readonly NodeObject[]>;
  readonly namespaceObject: Read<Named | undefined>;
  readonly daemonSet: Read<DaemonSet | undefined>;
  /** Cilium's configuration, in kube-system. */
  readonly cilium: Read<ConfigMapObject | undefined>;
  readonly multus: Read<Named | undefined>;
  /** The configuration of Multus' daemons: that of Multus' own manifests, and OpenShift's. */
  readonly multusDaemons: readonly Read<ConfigMapObject | undefined>[];
  /** The DaemonSet of Multus' own manifests. */
  readonly multusSet: Read<Named | undefined>;
  readonly runtimeClasses: Read<readonly (Named & { readonly handler?: string })[]>;
}

/** The result of the checks. */
export interface Preparation {
  readonly findings: readonly Finding[];
  /** The values to install with. */
  readonly values: Readonly<Record<string, string>>;
  /** Whether the namespace exists. */
  readonly hasNamespace: boolean;
  /** Whether `values` sets the directories, or their defaults apply. */
  readonly hasDirectories: boolean;
}

/** Of Multus' own manifests, and of OpenShift's network operator. */
const MULTUS_NAMESPACES = ["kube-system", "openshift-multus"] as const;

/** Reads the data for the checks before an installation. */
export async function readBefore(kubectl: Kubectl, namespace: string): Promise<Before> {
  const get = <T>(kind: string, name: string, where?: string) =>
    read(kind, kubectl.get<T>({ kind, name, ...(where === undefined ? {} : { namespace: where }) }));
  const parts = await all({
    nodes: read("nodes", kubectl.list<NodeObject>({ kind: "nodes" })),
    namespaceObject: get<Named>("namespace", namespace),
    daemonSet: get<DaemonSet>("daemonset", NAME, namespace),
    cilium: get<ConfigMapObject>("configmap", "cilium-config", "kube-system"),
    multus: get<Named>("customresourcedefinitions", "network-attachment-definitions.k8s.cni.cncf.io"),
    multusDaemons: Promise.all(
      MULTUS_NAMESPACES.map((where) => get<ConfigMapObject>("configmap", "multus-daemon-config", where)),
    ),
    multusSet: get<Named>("daemonset", "kube-multus-ds", "kube-system"),
    runtimeClasses: read("runtimeclasses", kubectl.list<Named>({ kind: "runtimeclasses.node.k8s.io" })),
  });
  return { namespace, ...parts };
}

/** The state of the cluster that the checks read. */
interface Cluster extends Before {
  readonly linux: readonly NodeObject[];
  /** Nodes that can have the installer. */
  readonly possible: readonly NodeObject[];
  /** These nodes, grouped by their directories. */
  readonly hosts: readonly (readonly [host: Host, nodes: readonly NodeObject[]])[];
}

/** The answer of a check: a success with a detail, or a problem and its remedy. */
interface Answer {
  /** @default the check's */
  readonly what?: string;
  readonly detail?: string | undefined;
  readonly problem?: string;
  readonly remedy?: string;
  /** Whether the installation would fail. @default false: a warning */
  readonly fatal?: boolean;
}

interface Check {
  /** The expected state. */
  readonly what: string;
  readonly link: string;
  /** No answer: the check does not apply. */
  readonly answer: (cluster: Cluster) => Answer | readonly Answer[] | undefined;
}

const PRE = docs("cli.md#before-an-installation");
const HOSTS = docs("hosts.md#directories");

const namesOf = (nodes: readonly NodeObject[]) =>
  `node${nodes.length === 1 ? "" : "s"} ${nodes
    .slice(0, 3)
    .map(({ metadata }) => metadata.name)
    .join(", ")}${nodes.length > 3 ? ` and ${nodes.length - 3} more` : ""}`;

/** Nodes with equal answers, the largest group first. */
function grouped<T>(nodes: readonly NodeObject[], answer: (node: NodeObject) => T | undefined) {
  const groups = new Map<string, [T, NodeObject[]]>();
  for (const node of nodes) {
    const found = answer(node);
    if (found === undefined) continue;
    const key = JSON.stringify(found);
    groups.set(key, [found, [...(groups.get(key)?.[1] ?? []), node]]);
  }
  return [...groups.values()].sort(([, a], [, b]) => b.length - a.length);
}

const versionsOf = (nodes: readonly NodeObject[]) => {
  const infos = nodes.map(({ status }) => status?.nodeInfo ?? {});
  const versions = infos.flatMap(({ kubeletVersion = "", containerRuntimeVersion = "" }) => [
    kubeletVersion,
    containerRuntimeVersion.replace("://", " "),
  ]);
  return [...new Set(versions)].filter((version) => version !== "").join(", ");
};

/** The different pairs of directories, with their nodes. */
const placesOf = ({ possible, hosts }: Cluster) =>
  grouped(possible, (node) => {
    const directories = hosts.find(([, own]) => own.includes(node))?.[0].directories;
    return directories && directoriesText(directories);
  });

/** The folder on the node with the auxiliary chain of Multus, if its daemon has one. */
function auxiliaryDir({ multus, multusDaemons }: Before): string | undefined {
  const text = multusDaemons.flatMap((each) => Object.values(known(each)?.data ?? {})).join("\n");
  const field = (name: string) => new RegExp(`"${name}"\\s*:\\s*"([^"]+)"`).exec(text)?.[1];
  const name = field("auxiliaryCNIChainName");
  if (known(multus) === undefined || name === undefined) return undefined;
  // The daemon's container sees the node's directories below /host.
  const directory = field("multusAutoconfigDir")?.replace(/^\/host(?=\/)/, "");
  return `${directory ?? DEFAULT_DIRECTORIES.destCNINetDir}/${name}`;
}

/** Whether the platform's preset uses the auxiliary chain. */
const prefersAuxiliary = ({ hosts }: Cluster) =>
  hosts.some(([{ platform }]) => platform && PLATFORMS[platform].chaining);

const multusIsReadable = ({ multusDaemons }: Before) => multusDaemons.every((each) => "value" in each);

/** In the order of the report. */
const CHECKS: readonly Check[] = [
  {
    what: "every node can have the plugin",
    link: PRE,
    answer: ({ linux, possible }) =>
      grouped(linux, impossible).map(([why, own]) => ({
        problem: `not possible on ${namesOf(own)}: ${why}`,
        remedy:
          possible.length === 0
            ? "there, let linkerd-init set the rules: install Linkerd without --linkerd-cni-enabled"
            : "keep meshed pods off these nodes, and the DaemonSet by the chart's nodeAffinity",
        fatal: possible.length === 0,
      })),
  },
  {
    what: "every node redirects without iptables",
    link: docs("hosts.md#what-the-node-needs"),
    answer: ({ possible }) =>
      grouped(possible, needsLegacy).map(([why, own]) => ({
        problem: `${namesOf(own)}: ${why}`,
        remedy:
          "leave iptablesMode as it is, and install iptables-legacy there, which the plugin then uses; or update the kernel",
      })),
  },
  {
    what: "the plugin gets the annotations of pods",
    link: docs("installer.md#lookups"),
    answer: ({ possible, multus }) => {
      const without = possible.filter(lacksAnnotations);
      const who = [
        ...(without.length === 0 ? [] : [`the container runtime of ${namesOf(without)}`]),
        ...(known(multus) === undefined ? [] : ["Multus"]),
      ];
      return who.map((each) => ({
        problem: `${each} does not pass annotations to plugins, so every pod waits while the installer of its node does not run`,
        remedy: "add --set priorityClassName=system-node-critical",
      }));
    },
  },
  {
    what: "the nodes' directories are known",
    link: HOSTS,
    answer: ({ hosts }) =>
      hosts.map(([{ title, platform, directories, doubt }, own]) => {
        const where = directories && directoriesText(directories);
        if (where !== undefined && doubt === undefined) {
          const facts = [`${own.length} node${own.length === 1 ? "" : "s"}`, versionsOf(own), where];
          return {
            what: platform === undefined ? title : `platform ${title}`,
            detail: facts.filter(Boolean).join("; "),
          };
        }
        return {
          problem: `${namesOf(own)} (${title}): ${where === undefined ? "not known: " : `likely ${where}; `}${doubt}`,
          remedy:
            "run crictl info on such a node: set destCNINetDir to its confDir, and destCNIBinDir to that of its binDirs with the other plugins",
        };
      }),
  },
  {
    what: "all nodes have the same directories",
    link: HOSTS,
    answer: (cluster) => {
      const places = placesOf(cluster);
      if (places.length < 2) return undefined;
      return {
        problem: `one installation has one pair of directories: ${places.map(([where, own]) => `${namesOf(own)} ${own.length === 1 ? "has" : "have"} ${where}`).join("; ")}`,
        remedy:
          "during an upgrade, finish it first; else keep the DaemonSet and meshed pods off some of these nodes (nodeAffinity), and set the directories of the others",
        fatal: true,
      };
    },
  },
  {
    what: "the nodes are ready",
    link: docs("cli.md#nodes"),
    answer: ({ possible }) =>
      grouped(possible, notReady).map(([problem]) => ({
        problem,
        remedy: "install a primary CNI before, or with it: the installer waits for its configuration",
      })),
  },
  {
    what: "Cilium does not change what others write",
    link: PRE,
    answer: ({ cilium, possible }) => {
      const found = known(cilium);
      if (found === undefined) return undefined;
      const exclusive = found.data?.["cni-exclusive"];
      if (exclusive === "false") return { detail: "cni-exclusive is false" };
      // It removes files, not folders.
      const unread = possible.filter(({ status }) => !readsDropins(status?.nodeInfo?.containerRuntimeVersion));
      if (unread.length === 0) return { detail: "it does not change drop-ins, which every node's runtime reads" };
      return {
        // Cilium's default.
        problem: `ConfigMap kube-system/cilium-config has cni-exclusive ${exclusive ?? "not set, which means true"}: Cilium removes what others write beside it, except drop-ins, which the runtime of ${namesOf(unread)} does not read`,
        remedy:
          "set cni.exclusive=false in Cilium's values, and restart its agents; or have containerd 2.1, CRI-O 1.34 or later on every node",
        fatal: true,
      };
    },
  },
  {
    what: "Cilium leaves the addresses of Services to the proxy",
    link: docs("hosts.md#cilium"),
    answer: ({ cilium }) => {
      const data = known(cilium)?.data ?? {};
      // Replacing kube-proxy turns it on, whatever bpf-lb-sock says.
      const isOn = ["true", "strict"].includes(data["kube-proxy-replacement"] ?? "") || data["bpf-lb-sock"] === "true";
      if (!isOn || data["bpf-lb-sock-hostns-only"] === "true") return undefined;
      return {
        problem:
          "Cilium's load balancing at sockets is on in pods: the proxy sees the address of one pod in place of the Service's, and does not balance its requests",
        remedy: "set socketLB.hostNamespaceOnly=true in Cilium's values, and restart its agents",
      };
    },
  },
  {
    what: "every pod has the network stack of its node",
    link: docs("hosts.md#sandboxes-of-their-own"),
    answer: ({ runtimeClasses }) => {
      const own = (known(runtimeClasses) ?? []).filter(({ handler = "" }) => /runsc|gvisor|kata/i.test(handler));
      if (own.length === 0) return undefined;
      const names = own.map(({ metadata }) => metadata.name).join(", ");
      return {
        problem: `pods of RuntimeClass ${names} have their own network stack, which the redirect does not reach`,
        remedy: "keep meshed pods off these RuntimeClasses",
      };
    },
  },
  {
    what: "pods that start before the plugin can be repaired",
    link: docs("operate.md#repair-controller"),
    answer: ({ possible }) =>
      possible.length === 0
        ? undefined
        : {
            detail:
              "add --set repairController.enabled=true; or --set nri.enabled=true, if every node's runtime has NRI on",
          },
  },
  {
    what: "the namespace allows pods that write to the node",
    link: docs("cli.md#nodes"),
    answer: ({ namespace, namespaceObject }) => {
      if ("problem" in namespaceObject) return unreadable(`not known: ${namespaceObject.problem}`);
      const { metadata } = namespaceObject.value ?? {};
      if (metadata === undefined)
        return { what: `namespace ${namespace} is not there yet`, detail: "the commands to install create it" };
      const level = metadata.labels?.["pod-security.kubernetes.io/enforce"] ?? "privileged";
      if (level === "privileged") return { what: `namespace ${namespace} allows pods that write to the node` };
      return {
        problem: `Pod Security enforces ${level} in namespace ${namespace}`,
        remedy: `kubectl label namespace ${namespace} pod-security.kubernetes.io/enforce=privileged --overwrite`,
        fatal: true,
      };
    },
  },
  {
    what: "nothing is installed yet",
    link: docs("cli.md#check"),
    answer: ({ namespace, daemonSet }) => {
      const found = known(daemonSet);
      if (found === undefined) return undefined;
      if (isOurs(found)) {
        const problem = `DaemonSet ${namespace}/${NAME} is there`;
        return { problem, remedy: "see its state: l5d-cni check, without --pre" };
      }
      return { what: "linkerd's own chart is installed", detail: "helm upgrade with this project's chart replaces it" };
    },
  },
  {
    what: "Multus has an auxiliary chain",
    link: docs("multus.md"),
    answer: (cluster) => {
      if (known(cluster.multus) === undefined) return undefined;
      const detail = auxiliaryDir(cluster);
      if (detail !== undefined) return { detail };
      if (!prefersAuxiliary(cluster)) {
        const how =
          "if container runtimes call only Multus, add --set chained=false and install the chart linkerd-multus";
        return { what: "Multus is installed", detail: how };
      }
      return {
        problem: multusIsReadable(cluster)
          ? "Multus' daemon has no auxiliaryCNIChainName, and the network operator reverts an edit of 00-multus.conf"
          : "the configuration of Multus' daemon cannot be read, so that it may have no auxiliary chain",
        remedy: "update OpenShift to 4.22; before, set chained=false and install the chart linkerd-multus",
      };
    },
  },
  {
    what: "the auxiliary chain has its plugin passthru",
    link: docs("multus.md#the-auxiliary-chain"),
    answer: (cluster) => {
      if (auxiliaryDir(cluster) === undefined) return undefined;
      const set = "DaemonSet kube-system/kube-multus-ds";
      const text = JSON.stringify(known(cluster.multusSet));
      if (text?.includes("passthru")) return { detail: `${set} installs it` };
      return {
        problem:
          text === undefined ? `not known: no ${set} shows whether it is on the nodes` : `${set} does not install it`,
        remedy:
          "check that destCNIBinDir of every node has passthru, which Multus' manifest since 4.2.2 installs: without it the installer leaves the chain alone and is not ready",
      };
    },
  },
];

/** The values for Multus. */
function multusValues(cluster: Cluster): Preparation["values"] {
  const directory = auxiliaryDir(cluster);
  if (directory === undefined) {
    const isWithout = known(cluster.multus) !== undefined && prefersAuxiliary(cluster) && multusIsReadable(cluster);
    return isWithout ? { chained: "false" } : {};
  }
  return {
    ...(prefersAuxiliary(cluster) ? {} : { chaining: "auxiliary" }),
    ...(directory === NodePath.auxiliaryChainDir ? {} : { "multus.auxiliaryChainDir": directory }),
  };
}

const category = new Category("linkerd-cni-pre");

function findingOf(
  { what: usual, link }: Check,
  { what = usual, detail, problem, remedy = "", fatal }: Answer,
): Finding {
  if (problem === undefined) return category.good(what, detail);
  return fatal === true ? category.bad(what, { problem, remedy, link }) : category.odd(what, { problem, remedy, link });
}

/** The findings before an installation. Pure: no I/O, no clock. */
export function prepare(before: Before): Preparation {
  const { nodes, namespaceObject } = before;
  const hasNamespace = "problem" in namespaceObject || namespaceObject.value !== undefined;
  if ("problem" in nodes) {
    const findings = [category.bad("the nodes tell their platform", unreadable(nodes.problem))];
    return { findings, values: {}, hasNamespace, hasDirectories: false };
  }
  const linux = nodes.value.filter(({ metadata }) => metadata.labels?.["kubernetes.io/os"] !== "windows");
  const possible = linux.filter((node) => impossible(node) === undefined);
  const cluster = { ...before, linux, possible, hosts: grouped(possible, hostJudge(linux)) };
  const findings = CHECKS.flatMap((check) =>
    [check.answer(cluster) ?? []].flat().map((answer) => findingOf(check, answer)),
  );
  const host = cluster.hosts.find(([{ directories }]) => directories !== undefined)?.[0];
  const hasDirectories = host !== undefined && placesOf(cluster).length === 1;
  const values = { ...(hasDirectories ? valuesFor(host) : {}), ...multusValues(cluster) };
  return { findings, values, hasNamespace, hasDirectories };
}

/** The commands that install with these values. */
export function installText({ values, hasNamespace, hasDirectories }: Preparation, namespace: string): string {
  const toFillIn = hasDirectories ? {} : { destCNINetDir: "CONF_DIR", destCNIBinDir: "BIN_DIR" };
  const set = Object.entries({ ...values, ...toFillIn })
    .map(([name, value]) => ` --set ${name}=${value}`)
    .join("");
  const labels = Object.entries(NAMESPACE_LABELS).map(([name, value]) => `${name}=${value}`);
  return [
    "",
    "Install with:",
    ...(hasNamespace ? [] : [`  kubectl create namespace ${namespace}`]),
    `  kubectl label namespace ${namespace} --overwrite ${labels.join(" ")}`,
    `  helm install linkerd-cni -n ${namespace} ${chartReference("linkerd2-cni")}${set}`,
    "or",
    `  l5d-cni install-cni --cni-namespace ${namespace}${set} | kubectl apply -f -`,
    "",
  ].join("\n");
}
