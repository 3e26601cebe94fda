import { NodePath } from "../cni/contract";
/** The needs of a Kubernetes platform: the two CNI directories of its nodes, and related settings. */
export interface Platform {
  /** The platform's name as in its documentation. */
  readonly title: string;
  /** Directory on the node from which the container runtime reads CNI configuration. */
  readonly destCNINetDir: string;
  /** Directory on the node in which the container runtime looks for CNI plugins. */
  readonly destCNIBinDir: string;
  /** The meaning of `chaining: auto`. @default the installer decides on the node */
  readonly chaining?: "auxiliary";
  /** SELinux context that the installer needs to write to these directories. @default none */
  readonly seLinuxOptions?: { readonly type: string };
  /** ClusterRole that lets the pods use a security context constraint. @default none */
  readonly securityContextConstraint?: string;
  /** Additional note for users. @default none */
  readonly note?: string;
}

/** The directories of containerd and CRI-O as they are distributed. */
const USUAL = { destCNINetDir: NodePath.netDir, destCNIBinDir: NodePath.binDir } as const;

/** SELinux allows this type everything; a runtime without SELinux ignores it. */
const UNCONFINED = { type: "spc_t" } as const;

const PRESETS = {
  aks: { title: "Azure Kubernetes Service", ...USUAL },
  bottlerocket: { title: "Bottlerocket", ...USUAL },
  eks: { title: "Amazon EKS", ...USUAL },
  gke: {
    title: "Google Kubernetes Engine",
    destCNINetDir: "/etc/cni/net.d",
    destCNIBinDir: "/home/kubernetes/bin",
    note: "Standard clusters only: Autopilot does not allow pods to write to the node",
  },
  k3s: {
    title: "k3s and k3d",
    destCNINetDir: "/var/lib/rancher/k3s/agent/etc/cni/net.d",
    destCNIBinDir: "/var/lib/rancher/k3s/data/cni",
    note:
      "for k3s with its own Flannel and containerd, since v1.28.15, v1.29.10, v1.30.6, v1.31.2, and in a container (k3d) " +
      "since v1.29.15, v1.30.11, v1.31.7, v1.32.3; docs/hosts.md has the directories of the others",
  },
  kind: { title: "kind", ...USUAL },
  microk8s: {
    title: "MicroK8s",
    destCNINetDir: "/var/snap/microk8s/current/args/cni-network",
    destCNIBinDir: "/var/snap/microk8s/current/opt/cni/bin",
    note: "after a refresh of the snap, restart the DaemonSet: the directories lead through a link that has moved",
  },
  minikube: { title: "minikube", ...USUAL },
  openshift: {
    title: "OpenShift",
    destCNINetDir: "/etc/kubernetes/cni/net.d",
    destCNIBinDir: "/var/lib/cni/bin",
    seLinuxOptions: UNCONFINED,
    securityContextConstraint: "system:openshift:scc:privileged",
    chaining: "auxiliary",
    note:
      "Multus calls the plugin by its auxiliary chain, which OpenShift enables since 4.22; before, set chained=false and " +
      "install the chart linkerd-multus: the network operator reverts an edit of 00-multus.conf",
  },
  rke2: { title: "RKE2", ...USUAL, seLinuxOptions: UNCONFINED },
  talos: { title: "Talos Linux", ...USUAL },
} satisfies Readonly<Record<string, Platform>>;

/** A value of `platform` with a preset. */
export type PlatformName = keyof typeof PRESETS;

/** The presets of the value `platform`. A user's value wins over its preset. */
export const PLATFORMS: Readonly<Record<PlatformName, Platform>> = PRESETS;

/** The values of `platform` with a preset. */
export const PLATFORM_NAMES = Object.keys(PRESETS) as readonly PlatformName[];

/** The directories if neither platform nor directory is given. */
export const DEFAULT_DIRECTORIES = USUAL;

/** The directories that result from values. */
export function directoriesOf(values: {
  readonly platform: "" | PlatformName;
  readonly destCNINetDir: string;
  readonly destCNIBinDir: string;
}): { readonly destCNINetDir: string; readonly destCNIBinDir: string } {
  const preset = values.platform === "" ? DEFAULT_DIRECTORIES : PLATFORMS[values.platform];
  return {
    destCNINetDir: values.destCNINetDir || preset.destCNINetDir,
    destCNIBinDir: values.destCNIBinDir || preset.destCNIBinDir,
  };
}
