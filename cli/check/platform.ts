import { tooOldForNative, tooOldForPlugin } from "../../cni/kernel";
import { PLATFORMS, type PlatformName } from "../../constructs/platforms";
import type { NodeObject } from "./objects";

const label = (node: NodeObject, name: string) => node.metadata.labels?.[name];
const info = (node: NodeObject) => node.status?.nodeInfo ?? {};
const hasLabels = (node: NodeObject, prefix: string) =>
  Object.keys(node.metadata.labels ?? {}).some((name) => name.startsWith(prefix));

/** How a node tells its platform, in this order: an operating system decides before the cloud that it runs in. */
const SIGNS: Readonly<Record<PlatformName, (node: NodeObject) => boolean>> = {
  talos: (node) => info(node).osImage?.startsWith("Talos") === true,
  bottlerocket: (node) => info(node).osImage?.startsWith("Bottlerocket") === true,
  openshift: (node) => hasLabels(node, "node.openshift.io/") || /CoreOS 4\d\d\./.test(info(node).osImage ?? ""),
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

/** The platform of a node; undefined if nothing tells it, and then the usual directories are likely. */
export const platformOf = (node: NodeObject): PlatformName | undefined => IN_ORDER.find((name) => SIGNS[name](node));

/** Why a node cannot have the installer, whatever the values; undefined if it can. */
export function impossible(node: NodeObject): string | undefined {
  const { kernelVersion = "", architecture = "" } = info(node);
  if (node.metadata.name?.startsWith("gk3-")) return "GKE Autopilot does not allow pods to write to the node";
  if (label(node, "eks.amazonaws.com/compute-type") === "fargate") return "Fargate does not run DaemonSets";
  if (label(node, "type") === "virtual-kubelet") return "a virtual node does not run DaemonSets";
  if (/64k/.test(kernelVersion))
    return `its kernel ${kernelVersion} has pages of 64 KB, with which the image does not start`;
  const tooOld = tooOldForPlugin(kernelVersion);
  if (tooOld !== undefined) return tooOld;
  if (!["", "amd64", "arm64"].includes(architecture)) return `the image has no program for ${architecture}`;
  return undefined;
}

/** Why mode native cannot redirect on a node; undefined if it can. */
export const needsLegacy = (node: NodeObject): string | undefined => tooOldForNative(info(node).kernelVersion ?? "");

/** Releases of k3s since which its plugins are in the preset's directory. */
const K3S_MOVED: Readonly<Record<number, number>> = { 28: 15, 29: 10, 30: 6, 31: 2 };

/** Whether a node runs a k3s whose plugins are in another directory than the preset's. */
function isOldK3s(node: NodeObject): boolean {
  const [, minor = 0, patch = 0] = (/^v1\.(\d+)\.(\d+)/.exec(info(node).kubeletVersion ?? "") ?? []).map(Number);
  return minor < 28 || patch < (K3S_MOVED[minor] ?? 0);
}

/** The values for nodes of one platform: `platform`, and values that override its preset. */
export function valuesFor(platform: PlatformName, nodes: readonly NodeObject[]): Readonly<Record<string, string>> {
  if (platform !== "k3s" || !nodes.some(isOldK3s)) return { platform };
  return { platform, destCNIBinDir: "/var/lib/rancher/k3s/data/current/bin" };
}

/** The two directories of a platform's nodes. */
export const directoriesText = (platform: PlatformName): string =>
  `${PLATFORMS[platform].destCNINetDir} and ${PLATFORMS[platform].destCNIBinDir}`;
