import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { NODE, POD_NETWORK } from "./addresses";
import { kubeconfig } from "./certificates";
import { CGROUP } from "./cgroups";
import type { Daemon } from "./control-plane";
import { PAUSE } from "./images";
import { onDisk, paths } from "./paths";
import { CNI_PLUGINS } from "./requirements";

const KUBELET_CONFIG = join(paths.state, "kubelet.json");
const CONTAINERD_CONFIG = join(paths.state, "containerd.toml");
const RUNTIME = "/run/containerd/containerd.sock";

/** The plugins of the cluster's own network. */
const PLUGINS = ["bridge", "host-local", "loopback", "portmap"];
/** The configuration of the cluster's own network, as a node has it before ours is chained to it. */
const PRIMARY = `{
  "cniVersion": "1.0.0",
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
  containerRuntimeEndpoint: `unix://${RUNTIME}`,
  // Whoever reaches the kubelet is in the machine's own network.
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
  serializeImagePulls: false,
  staticPodPath: "/etc/kubernetes/manifests",
  podLogsDir: "/var/log/pods",
  volumePluginDir: "/var/lib/kubelet/volume-plugins",
  // A full disk of the host is none of the cluster's business, and images cannot be pulled again.
  evictionHard: { "memory.available": "50Mi", "nodefs.available": "0%", "imagefs.available": "0%" },
  imageGCHighThresholdPercent: 100,
};

const containerdConfig = `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0
[grpc]
  address = "${RUNTIME}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/opt/cni/bin"
    conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
`;

export const containerd: Daemon = {
  name: "containerd",
  command: ["containerd", "--config", CONTAINERD_CONFIG],
  ready: ["ctr", "version"],
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

/** Writes what a node has on its disk before Kubernetes starts: configuration, and a network of its own. */
export async function prepareNode(): Promise<void> {
  await writeFile(KUBELET_CONFIG, JSON.stringify(kubeletConfig));
  await writeFile(CONTAINERD_CONFIG, containerdConfig);
  for (const name of PLUGINS) await copyFile(join(CNI_PLUGINS, name), join(onDisk("/opt/cni/bin"), name));
  await mkdir(onDisk("/etc/cni/net.d"), { recursive: true });
  await writeFile(join(onDisk("/etc/cni/net.d"), "10-cluster.conflist"), PRIMARY);
}
