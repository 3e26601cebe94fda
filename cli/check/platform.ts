import { tooOldForNative, tooOldForPlugin } from "../../cni/kernel";
import { DEFAULT_DIRECTORIES, PLATFORMS, type Platform, type PlatformName } from "../../constructs/platforms";
import type { NodeObject } from "./objects";

type Directories = Pick<Platform, "destCNINetDir" | "destCNIBinDir">;

const label = (node: NodeObject, name: string) => node.metadata.labels?.[name];
const info = (node: NodeObject) => node.status?.nodeInfo ?? {};
const startsKey = (keys: Readonly<Record<string, string>> | undefined, prefix: string) =>
  Object.keys(keys ?? {}).some((name) => name.startsWith(prefix));
const hasLabels = ({ metadata }: NodeObject, prefix: string) => startsKey(metadata.labels, prefix);

/** The signs of each platform, in this order: an operating system decides before the cloud that it runs in. */
const SIGNS: Readonly<Record<PlatformName, (node: NodeObject) => boolean>> = {
  talos: (node) => info(node).osImage?.startsWith("Talos") === true,
  bottlerocket: (node) => info(node).osImage?.startsWith("Bottlerocket") === true,
  // MicroShift has labels of node.openshift.io too, but neither this operating system nor OpenShift's directories.
  openshift: (node) =>
    startsKey(node.metadata.annotations, "machineconfiguration.openshift.io/") ||
    label(node, "node.openshift.io/os_id") === "rhcos" ||
    /CoreOS 4\d\d\./.test(info(node).osImage ?? ""),
  gke: (node) => hasLabels(node, "cloud.google.com/gke-") || /-gke\./.test(info(node).kubeletVersion ?? ""),
  aks: (node) => hasLabels(node, "kubernetes.azure.com/"),
  rke2: (node) => /\+rke2/.test(info(node).kubeletVersion ?? ""),
  k3s: (node) => /\+k3s/.test(info(node).kubeletVersion ?? ""),
  microk8s: (node) => hasLabels(node, "microk8s.io/"),
  eks: (node) => hasLabels(node, "eks.amazonaws.com/") || /-eks-/.test(info(node).kubeletVersion ?? ""),
  minikube: (node) => hasLabels(node, "minikube.k8s.io/"),
  kind: (node) => node.spec?.providerID?.startsWith("kind://") === true,
};
const IN_ORDER = Object.keys(SIGNS) as PlatformName[];

/** The platform of a node; undefined if it has no sign of one. */
export const platformOf = (node: NodeObject): PlatformName | undefined => IN_ORDER.find((name) => SIGNS[name](node));

/** What the API server knows about the CNI directories of a node. */
export interface Host {
  /** The platform or its variant, for messages. */
  readonly title: string;
  /** The value `platform`, if its preset applies. */
  readonly platform?: PlatformName;
  /** Undefined if the API server does not tell. */
  readonly directories?: Directories;
  /** Why the directories are not known, or may be others. */
  readonly doubt?: string;
}

/** The flags of a k3s node, as k3s writes them into its annotation; undefined without a readable annotation. */
function k3sFlags({ metadata }: NodeObject): readonly string[] | undefined {
  try {
    const flags: unknown = JSON.parse(metadata.annotations?.["k3s.io/node-args"] ?? "");
    return Array.isArray(flags) ? flags.map(String).flatMap((flag) => flag.split(/(?<=^--[\w-]+)=/)) : undefined;
  } catch {
    return undefined;
  }
}

function flagOf(node: NodeObject, ...names: readonly string[]): string | undefined {
  const flags = k3sFlags(node) ?? [];
  const at = flags.findLastIndex((flag) => names.includes(flag));
  return at < 0 ? undefined : flags[at + 1];
}

/** Whether a release of Kubernetes is older than the first patch release of its minor version in a table. */
function precedes(version: string, since: Readonly<Record<number, number>>): boolean {
  const [, minor = 0, patch = 0] = (/^v1\.(\d+)\.(\d+)/.exec(version) ?? []).map(Number);
  return minor < Math.min(...Object.keys(since).map(Number)) || patch < (since[minor] ?? 0);
}

/** Where k3s has its plugins, by its releases: the first patch release of each minor version with the next directory. */
const K3S = {
  dataDir: "/var/lib/rancher/k3s",
  current: "/var/lib/rancher/k3s/data/current/bin",
  inPreset: { 28: 15, 29: 10, 30: 6, 31: 2 },
  inImage: "/bin",
  inPresetOfImage: { 29: 15, 30: 11, 31: 7, 32: 3 },
} as const;

/** What the flags of k3s' servers say; they apply to the agents, too, which do not have them. */
interface Servers {
  readonly isWithoutFlannel: boolean;
  readonly showsFlags: boolean;
}

/** k3s configures its own containerd: the directories follow from its flags, its release and its image. */
function k3sHost(node: NodeObject, { isWithoutFlannel, showsFlags }: Servers): Host {
  const { osImage = "", kubeletVersion = "", containerRuntimeVersion = "" } = info(node);
  if (!containerRuntimeVersion.includes("-k3s")) {
    const doubt = `k3s does not configure ${containerRuntimeVersion || "its container runtime"}, which is not its own`;
    return { title: "k3s with another container runtime", doubt };
  }
  if (isWithoutFlannel) return { title: "k3s without its Flannel", directories: DEFAULT_DIRECTORIES };
  const doubt = showsFlags
    ? {}
    : {
        doubt: `if the servers run with --flannel-backend=none, which no annotation k3s.io/node-args of a server shows, ${directoriesText(DEFAULT_DIRECTORIES)}`,
      };
  const preset = PLATFORMS.k3s;
  const isImage = osImage.startsWith("K3s ");
  const [former, since] = isImage ? [K3S.inImage, K3S.inPresetOfImage] : [K3S.current, K3S.inPreset];
  const binDir = precedes(kubeletVersion, since) ? former : preset.destCNIBinDir;
  const root = flagOf(node, "--data-dir", "-d");
  const under = (path: string) => (root === undefined ? path : path.replace(K3S.dataDir, () => root));
  const directories = {
    destCNINetDir: under(preset.destCNINetDir),
    destCNIBinDir: under(binDir),
  };
  return {
    title: isImage ? "k3s in a container, as k3d runs it" : preset.title,
    platform: "k3s",
    directories,
    ...doubt,
  };
}

/** Judges the directories of each node of a cluster. @param all its nodes */
export function hostJudge(all: readonly NodeObject[]): (node: NodeObject) => Host {
  const servers = {
    isWithoutFlannel: all.some((node) => flagOf(node, "--flannel-backend") === "none"),
    showsFlags: all.some((node) => k3sFlags(node)?.[0] === "server"),
  };
  return (node) => hostOf(node, servers);
}

function hostOf(node: NodeObject, servers: Servers): Host {
  const platform = platformOf(node);
  if (platform === "k3s") return k3sHost(node, servers);
  if (platform !== undefined) return { title: PLATFORMS[platform].title, platform, directories: PLATFORMS[platform] };
  const { containerRuntimeVersion: runtime = "" } = info(node);
  if (/^(?:containerd|docker):/.test(runtime)) {
    return { title: "no platform with a preset: the container runtime's defaults", directories: DEFAULT_DIRECTORIES };
  }
  const doubt = `each distribution configures ${runtime || "the container runtime"} with its own directories`;
  return { title: "no platform with a preset", doubt };
}

/** The two directories in words. */
export const directoriesText = ({ destCNINetDir, destCNIBinDir }: Directories): string =>
  `${destCNINetDir} and ${destCNIBinDir}`;

/** The values for nodes of a host: `platform`, and directories that differ from its preset. */
export function valuesFor({ platform, directories }: Host): Readonly<Record<string, string>> {
  const preset = platform === undefined ? DEFAULT_DIRECTORIES : PLATFORMS[platform];
  const { destCNINetDir, destCNIBinDir } = directories ?? preset;
  return {
    ...(platform === undefined ? {} : { platform }),
    ...(destCNINetDir === preset.destCNINetDir ? {} : { destCNINetDir }),
    ...(destCNIBinDir === preset.destCNIBinDir ? {} : { destCNIBinDir }),
  };
}

/** Labels of nodes that no kubelet runs. */
const VIRTUAL: readonly (readonly [label: string, value: string])[] = [
  ["type", "virtual-kubelet"],
  ["type", "kwok"],
  ["liqo.io/type", "virtual-node"],
];

/** Why a node cannot have the installer, whatever the values; undefined if it can. */
export function impossible(node: NodeObject): string | undefined {
  const { kernelVersion = "", architecture = "" } = info(node);
  if (node.metadata.name?.startsWith("gk3-")) return "GKE Autopilot does not allow pods to write to the node";
  const virtual = VIRTUAL.find(([name, value]) => label(node, name) === value)?.join("=");
  if (virtual !== undefined)
    return `no pod of the installer starts on a virtual node (${virtual}), and a rollout waits for it`;
  if (label(node, "eks.amazonaws.com/compute-type") === "fargate") return "Fargate does not run DaemonSets";
  const tooOld = tooOldForPlugin(kernelVersion);
  if (tooOld !== undefined) return tooOld;
  if (!["", "amd64", "arm64"].includes(architecture)) return `the image has no program for ${architecture}`;
  return undefined;
}

/** Why mode native cannot redirect on a node; undefined if it can. */
export const needsLegacy = (node: NodeObject): string | undefined => tooOldForNative(info(node).kernelVersion ?? "");

/** The runtimes that pass no annotations to plugins: cri-dockerd, containerd before 1.5, CRI-O before 1.29. */
const WITHOUT_ANNOTATIONS = /^(?:docker:|containerd:\/\/v?1\.[0-4]\.|cri-o:\/\/v?1\.(?:1?\d|2[0-8])\.)/;

/** Whether a node's runtime passes no annotations to plugins. */
export const lacksAnnotations = (node: NodeObject): boolean =>
  WITHOUT_ANNOTATIONS.test(info(node).containerRuntimeVersion ?? "");
