import { copyFile, mkdir, readdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DNS_SERVICE, NODE, POD_NETWORK } from "./addresses";
import { kubeconfig } from "./certificates";
import { CGROUP } from "./cgroups";
import type { Daemon } from "./control-plane";
import { onDisk, paths } from "./paths";
import { CNI_PLUGINS } from "./requirements";
import { CNI_DIRECTORIES, prepareRuntime, type RuntimeName, runtime } from "./runtimes";

const KUBELET_CONFIG = join(paths.state, "kubelet.json");

/** The plugins of the cluster's own network. */
const PLUGINS = ["bridge", "host-local", "loopback", "portmap"];
/** The configuration of the cluster's own network, as a node has it before ours is chained to it. */
const primary = (cniVersion: string) => `{
  "cniVersion": "${cniVersion}",
  "name": "cluster",
  "plugins": [
    {
      "type": "bridge",
      "bridge": "${NODE.podBridge}",
      "isDefaultGateway": true,
      "hairpinMode": true,
      "ipam": { "type": "host-local", "dataDir": "/run/cni", "ranges": [[{ "subnet": "${POD_NETWORK}" }]] }
    },
    { "type": "portmap", "capabilities": { "portMappings": true } }
  ]
}
`;

const kubeletConfig = () => ({
  kind: "KubeletConfiguration",
  apiVersion: "kubelet.config.k8s.io/v1beta1",
  containerRuntimeEndpoint: `unix://${runtime().socket}`,
  // Only processes in the machine's own network reach the kubelet.
  authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
  authorization: { mode: "AlwaysAllow" },
  cgroupDriver: "cgroupfs",
  cgroupRoot: `/${CGROUP}`,
  failCgroupV1: false,
  failSwapOn: false,
  // Not every root may lower its own score.
  oomScoreAdj: 0,
  makeIPTablesUtilChains: false,
  resolvConf: "",
  // Without an address the kubelet warns about every pod.
  clusterDNS: [DNS_SERVICE],
  // The kubelet soon reports pods whose state it could not report while the API server was away.
  syncFrequency: "10s",
  serializeImagePulls: false,
  // A dense node has more than the usual 110.
  maxPods: 260,
  staticPodPath: "/etc/kubernetes/manifests",
  podLogsDir: "/var/log/pods",
  volumePluginDir: "/var/lib/kubelet/volume-plugins",
  // A full disk of the host is none of the cluster's business, and images cannot be pulled again.
  evictionHard: { "memory.available": "50Mi", "nodefs.available": "0%", "imagefs.available": "0%" },
  imageGCHighThresholdPercent: 100,
});

export const kubelet: Daemon = {
  name: "kubelet",
  command: [
    "kubelet",
    `--config=${KUBELET_CONFIG}`,
    `--kubeconfig=${kubeconfig("kubelet")}`,
    `--hostname-override=${NODE.name}`,
    `--node-ip=${NODE.address}`,
  ],
};

/**
 * Writes the files that a node has before Kubernetes starts: configuration, and its own network.
 * @param name of its container runtime
 * @param built directory with a containerd and CNI plugins; without it the distribution's are used
 */
export async function prepareNode(name: RuntimeName, built: string | undefined): Promise<void> {
  await prepareRuntime(name);
  await writeFile(KUBELET_CONFIG, JSON.stringify(kubeletConfig()));
  await mkdir(paths.programs, { recursive: true });
  if (built !== undefined) await usePrograms(built);
  await cleanDisk(built);
}

/** Has the machine find the programs of a directory before others of their names, from their next start on. */
export async function usePrograms(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    const link = join(paths.programs, name);
    await rm(link, { force: true });
    await symlink(join(directory, name), link);
  }
}

/** The configuration of the node's network. */
export const CONFIGURATION = join(onDisk(CNI_DIRECTORIES.conf), "10-cluster.conflist");

/** Replaces it at once, as a CNI installer does. */
export async function configure(configuration: string): Promise<void> {
  await writeFile(`${CONFIGURATION}.new`, configuration);
  await rename(`${CONFIGURATION}.new`, CONFIGURATION);
}

/** Leaves nothing in the node's CNI directories but its own network. @param built as for {@link prepareNode} */
export async function cleanDisk(built: string | undefined): Promise<void> {
  const [bin, conf] = [onDisk(CNI_DIRECTORIES.bin), onDisk(CNI_DIRECTORIES.conf)];
  for (const directory of [bin, conf]) {
    for (const name of await readdir(directory)) await rm(join(directory, name), { recursive: true });
  }
  for (const name of PLUGINS) await copyFile(join(built ?? CNI_PLUGINS, name), join(bin, name));
  // From 1.1.0 on, runtimes that know it ask the chain for its STATUS.
  await writeFile(CONFIGURATION, primary(built === undefined ? "1.0.0" : "1.1.0"));
}
