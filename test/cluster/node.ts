import { copyFile, mkdir, readdir, readFile, readlink, rename, rm, symlink, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { DNS_SERVICE, NODE, POD_NETWORK } from "./addresses";
import { BUILT_CONTAINERDS, type BuiltContainerd } from "./binaries";
import { kubeconfig } from "./certificates";
import { CGROUP } from "./cgroups";
import type { Daemon } from "./control-plane";
import { ContainerRuntime } from "./cri";
import { PAUSE } from "./images";
import { onDisk, paths } from "./paths";
import { CNI_PLUGINS } from "./requirements";

const KUBELET_CONFIG = join(paths.state, "kubelet.json");
export const CONTAINERD_CONFIG = join(paths.state, "containerd.toml");
export const RUNTIME_SOCKET = "/run/containerd/containerd.sock";

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

const kubeletConfig = {
  kind: "KubeletConfiguration",
  apiVersion: "kubelet.config.k8s.io/v1beta1",
  containerRuntimeEndpoint: `unix://${RUNTIME_SOCKET}`,
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
};

/** Differences between container runtimes. */
interface Runtime {
  readonly config: string;
  /** Version of the node's CNI configuration: from 1.1.0 on, containerd 2 asks the chain for its STATUS. */
  readonly cniVersion: string;
}

const COMMON = `root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0
[grpc]
  address = "${RUNTIME_SOCKET}"
`;
/** Where containerd 2 listens for NRI plugins, in the machine's own /run. */
export const NRI_SOCKET = "/run/nri/nri.sock";
const nriValidator = (enabled: boolean) => `enable = ${enabled}`;
const DIRECTORIES = { bin: "/opt/cni/bin", conf: "/etc/cni/net.d" };

const RUNTIMES = {
  "1": {
    cniVersion: "1.0.0",
    config: `version = 2
${COMMON}[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "${paths.registries}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${DIRECTORIES.bin}"
    conf_dir = "${DIRECTORIES.conf}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
`,
  },
  "2": {
    cniVersion: "1.1.0",
    config: `version = 3
${COMMON}[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "${PAUSE}"
[plugins."io.containerd.cri.v1.images".registry]
  config_path = "${paths.registries}"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["${DIRECTORIES.bin}"]
    conf_dir = "${DIRECTORIES.conf}"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.nri.v1.nri"]
  disable = false
  socket_path = "${NRI_SOCKET}"
  [plugins."io.containerd.nri.v1.nri".default_validator]
    ${nriValidator(false)}
`,
  },
} as const satisfies Readonly<Record<string, Runtime>>;

/** Version of containerd: 1 is the distribution's own, the others are built here. */
export type ContainerdVersion = "1" | BuiltContainerd;
export const CONTAINERD_VERSIONS: readonly ContainerdVersion[] = ["1", ...BUILT_CONTAINERDS];

export const containerd: Daemon = {
  name: "containerd",
  command: ["containerd", "--config", CONTAINERD_CONFIG],
  // The kubelet ends if it finds no CRI, which containerd serves some time after its own interface.
  async ready(machine) {
    const runtime = new ContainerRuntime(machine.outside(RUNTIME_SOCKET));
    await runtime.version().finally(() => runtime.close());
  },
};

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
 * @param built directory with a containerd and CNI plugins; without it the distribution's are used
 */
export async function prepareNode(built: string | undefined): Promise<void> {
  const { config } = RUNTIMES[built === undefined ? "1" : "2"];
  await writeFile(KUBELET_CONFIG, JSON.stringify(kubeletConfig));
  await writeFile(CONTAINERD_CONFIG, config);
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

/** The containerd that a node was prepared for. */
export async function preparedContainerd(): Promise<ContainerdVersion> {
  const program = await readlink(join(paths.programs, containerd.name)).catch(() => "");
  const built = basename(dirname(program));
  return BUILT_CONTAINERDS.find((version) => built.startsWith(`containerd-${version}-`)) ?? "1";
}

/** The configuration of the node's network. */
export const CONFIGURATION = join(onDisk(DIRECTORIES.conf), "10-cluster.conflist");

/** Replaces it at once, as a CNI installer does. */
export async function configure(configuration: string): Promise<void> {
  await writeFile(`${CONFIGURATION}.new`, configuration);
  await rename(`${CONFIGURATION}.new`, CONFIGURATION);
}

/** Whether containerd 2, from its next start on, refuses containers that require an NRI plugin which is not there. */
export async function setNriValidator(enabled: boolean): Promise<void> {
  const config = await readFile(CONTAINERD_CONFIG, "utf8");
  await writeFile(CONTAINERD_CONFIG, config.replace(nriValidator(!enabled), nriValidator(enabled)));
}

/** Leaves nothing in the node's CNI directories but its own network. @param built as for {@link prepareNode} */
export async function cleanDisk(built: string | undefined): Promise<void> {
  const { cniVersion } = RUNTIMES[built === undefined ? "1" : "2"];
  const [bin, conf] = [onDisk(DIRECTORIES.bin), onDisk(DIRECTORIES.conf)];
  for (const directory of [bin, conf]) {
    for (const name of await readdir(directory)) await rm(join(directory, name), { recursive: true });
  }
  for (const name of PLUGINS) await copyFile(join(built ?? CNI_PLUGINS, name), join(bin, name));
  await writeFile(CONFIGURATION, primary(cniVersion));
}
