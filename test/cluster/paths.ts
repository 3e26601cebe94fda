import { join } from "node:path";
import { root } from "../../build/paths";

const cache = join(root, ".cache", "cluster");
const state = join(cache, "node");

/** Everything the cluster keeps, all of it below the checkout's cache. */
export const paths = {
  /** Executables, kept from one cluster to the next. */
  binaries: join(cache, "bin"),
  helm: join(root, ".cache", "bin", "helm"),
  /** Where `.ci/install-go` puts Go. */
  go: join(root, ".cache", "go", "bin"),
  /** One cluster's state: gone after `down`. */
  state,
  /** Programs that stand before the host's own on the machine's PATH. */
  programs: join(state, "bin"),
  logs: join(state, "logs"),
  /** Process ids inside the machine, a file a daemon. */
  pids: join(state, "pids"),
  certificates: join(state, "certificates"),
  kubeconfigs: join(state, "kubeconfigs"),
  images: join(state, "images"),
  /** How containerd reaches registries, a directory each; without one it would speak TLS. */
  registries: join(state, "registries"),
  /** HOME of processes in the machine: caches of kubectl and helm. */
  home: join(state, "home"),
  /** Directories that stand at the usual places inside the machine. */
  disk: join(state, "disk"),
} as const;

/** The path outside of a directory of the machine, such as `/etc/cni/net.d`. */
export const onDisk = (directory: string) => join(paths.disk, directory);

/** Directories of the machine that outlive its mount namespace, at their usual places. */
export const DISK = [
  "/etc/cni/net.d",
  "/etc/kubernetes/manifests",
  "/opt/cni/bin",
  "/var/lib/cni",
  "/var/lib/containerd",
  "/var/lib/containers",
  "/var/lib/etcd",
  "/var/lib/kubelet",
  "/var/log/containers",
  "/var/log/pods",
] as const;
