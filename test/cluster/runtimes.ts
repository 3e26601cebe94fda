/** The container runtimes of the node: each is one daemon, with what differs from the others. */
import { existsSync } from "node:fs";
import { readFile, readlink, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { NodePath } from "../../cni/contract";
import { missing, which } from "../support/requirements";
import { BUILT_CONTAINERDS, type BuiltContainerd } from "./binaries";
import type { Daemon } from "./control-plane";
import { ContainerRuntime } from "./cri";
import type { Machine } from "./machine";
import { paths } from "./paths";

/** The image that holds a pod's namespaces. */
export const PAUSE = "linkerd-cni.test/pause:1";
export const CONTAINERD_CONFIG = join(paths.state, "containerd.toml");
const CRIO_CONFIG = join(paths.state, "crio.conf");
/** Stands between CRI-O and runc. */
const RUNC = join(paths.state, "runc");
/** Where containerd 2 and CRI-O listen for NRI plugins, in the machine's own /run. */
export const NRI_SOCKET = "/run/nri/nri.sock";
export const CNI_DIRECTORIES = { bin: "/opt/cni/bin", conf: "/etc/cni/net.d" };

/** A container runtime as a daemon of the node. */
interface Runtime extends Daemon {
  /** Where it listens for the kubelet. */
  readonly socket: string;
  /** Gives it the image of an OCI archive, because there is no registry. */
  readonly importImage: (machine: Machine, archive: string) => Promise<unknown>;
}

/** Version of containerd: 1 is the distribution's own, the others are built here. */
export type ContainerdVersion = "1" | BuiltContainerd;
export const CONTAINERD_VERSIONS: readonly ContainerdVersion[] = ["1", ...BUILT_CONTAINERDS];
/** A container runtime: CRI-O, or a version of containerd. */
export type RuntimeName = ContainerdVersion | "crio";

// The kubelet ends if it finds no CRI, which containerd serves some time after its own interface.
const served = (socket: string) => async (machine: Machine) => {
  const client = new ContainerRuntime(machine.outside(socket));
  await client.version().finally(() => client.close());
};

export const containerd: Runtime = {
  name: "containerd",
  command: ["containerd", "--config", CONTAINERD_CONFIG],
  socket: "/run/containerd/containerd.sock",
  ready: served("/run/containerd/containerd.sock"),
  importImage: (machine, archive) => machine.run(["ctr", "--namespace=k8s.io", "images", "import", archive]),
};

/** Directory that holds CRI-O's executables, `crio` and `pinns`: they can be neither installed nor built in every test run. */
const CRIO = process.env["CRIO_PEER"] || undefined;
const CRIO_RUN = "/run/crio";
const CRIO_STORAGE = { root: "/var/lib/containers/storage", run: "/run/containers/storage", driver: "overlay" };

/** What CRI-O needs and this machine lacks, in words. */
export function lacksCrio(): string | undefined {
  return CRIO === undefined ? "CRIO_PEER" : missing({ programs: ["conmon", "runc", "skopeo"] });
}

const crio: Runtime = {
  name: "crio",
  command: crioCommand(CRIO_CONFIG),
  socket: `${CRIO_RUN}/crio.sock`,
  ready: served(`${CRIO_RUN}/crio.sock`),
  async importImage(machine, archive) {
    const index = JSON.parse(await machine.run(["tar", "--extract", "--to-stdout", `--file=${archive}`, "index.json"]));
    const reference: string = index.manifests[0].annotations["io.containerd.image.name"];
    await machine.run(crioImport(CRIO_STORAGE, archive, reference));
  },
};

/** The node's container runtime. */
export const runtime = (): Runtime => (existsSync(CRIO_CONFIG) ? crio : containerd);

/** The container runtime that the node was prepared for. */
export async function preparedRuntime(): Promise<RuntimeName> {
  if (runtime() === crio) return "crio";
  const program = await readlink(join(paths.programs, containerd.name)).catch(() => "");
  const built = basename(dirname(program));
  return BUILT_CONTAINERDS.find((version) => built.startsWith(`containerd-${version}-`)) ?? "1";
}

const COMMON = `root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0
[grpc]
  address = "${containerd.socket}"
`;
const nriValidator = (enabled: boolean) => `enable = ${enabled}`;

const CONTAINERD_1 = `version = 2
${COMMON}[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "${paths.registries}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${CNI_DIRECTORIES.bin}"
    conf_dir = "${CNI_DIRECTORIES.conf}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
`;

const CONTAINERD_2 = `version = 3
${COMMON}[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "${PAUSE}"
[plugins."io.containerd.cri.v1.images".registry]
  config_path = "${paths.registries}"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["${CNI_DIRECTORIES.bin}"]
    conf_dir = "${CNI_DIRECTORIES.conf}"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.nri.v1.nri"]
  disable = false
  socket_path = "${NRI_SOCKET}"
  [plugins."io.containerd.nri.v1.nri".default_validator]
    ${nriValidator(false)}
`;

/** Not every root may lower an OOM score or raise a limit, and not every kernel has the cgroup for huge pages. */
const RUNC_WITHOUT_LIMITS = `#!/bin/sh
for word; do
  case $before in
    --bundle) file=$word/config.json ;;
    --process) file=$word ;;
  esac
  before=$word
done
[ -z "$file" ] || sed -z -E -i '
  s/"oomScoreAdj": *-[0-9]+/"oomScoreAdj": 0/
  s/"(rlimits|hugepageLimits)": *\\[[^]]*\\]/"\\1": []/g
' "$file"
exec runc "$@"
`;

/** Writes the configuration of a container runtime. */
export async function prepareRuntime(name: RuntimeName): Promise<void> {
  if (name !== "crio") return writeFile(CONTAINERD_CONFIG, name === "1" ? CONTAINERD_1 : CONTAINERD_2);
  await writeFile(RUNC, RUNC_WITHOUT_LIMITS, { mode: 0o755 });
  const { bin: binDir, conf: netDir } = CNI_DIRECTORIES;
  const namespacesDir = dirname(NodePath.netnsDir);
  const layout = { netDir, binDir, socket: crio.socket, nriSocket: NRI_SOCKET, namespacesDir };
  await writeFile(CRIO_CONFIG, crioConfig({ ...layout, run: CRIO_RUN, storage: CRIO_STORAGE, runc: RUNC }));
}

/** Whether containerd 2, from its next start on, refuses containers that require an NRI plugin which is not there. */
export async function setNriValidator(enabled: boolean): Promise<void> {
  if (runtime() !== containerd) return;
  const config = await readFile(CONTAINERD_CONFIG, "utf8");
  await writeFile(CONTAINERD_CONFIG, config.replace(nriValidator(!enabled), nriValidator(enabled)));
}

/** Where CRI-O keeps images and containers. */
interface CrioStorage {
  readonly root: string;
  readonly run: string;
  readonly driver: string;
}

/** Paths of CRI-O on a node. */
interface CrioLayout {
  /** Directory of its state, which a boot empties. */
  readonly run: string;
  readonly storage: CrioStorage;
  readonly netDir: string;
  readonly binDir: string;
  readonly socket: string;
  readonly nriSocket: string;
  /** Where it keeps namespaces, in a directory for each kind. */
  readonly namespacesDir: string;
  readonly runc: string;
}

export const crioConfig = ({ run, storage, netDir, binDir, socket, nriSocket, namespacesDir, runc }: CrioLayout) =>
  `[crio]
root = "${storage.root}"
runroot = "${storage.run}"
storage_driver = "${storage.driver}"
log_dir = "${run}/pods"
version_file = "${run}/version"
version_file_persist = ""
clean_shutdown_file = "${run}/clean-shutdown"
[crio.api]
listen = "${socket}"
stream_port = "0"
[crio.runtime]
cgroup_manager = "cgroupfs"
conmon_cgroup = "pod"
default_runtime = "runc"
namespaces_dir = "${namespacesDir}"
pinns_path = "${CRIO}/pinns"
apparmor_profile = "unconfined"
container_exits_dir = "${run}/exits"
container_attach_socket_dir = "${run}/attach"
hooks_dir = []
default_mounts_file = ""
irqbalance_config_file = ""
[crio.runtime.runtimes.runc]
runtime_path = "${runc}"
runtime_type = "oci"
runtime_root = "${run}/runc"
monitor_path = "${which("conmon")}"
[crio.image]
pause_image = "${PAUSE}"
pause_command = "/programs pause"
[crio.network]
network_dir = "${netDir}"
plugin_dirs = ["${binDir}"]
[crio.nri]
enable_nri = true
nri_listen = "${nriSocket}"
`;

export function crioCommand(config: string): readonly string[] {
  return [`${CRIO}/crio`, "--config", config];
}

/** The command that gives CRI-O the image of an OCI archive. */
export function crioImport({ root, run, driver }: CrioStorage, archive: string, reference: string): readonly string[] {
  const to = `containers-storage:[${driver}@${root}+${run}]${reference}`;
  return ["skopeo", "--insecure-policy", "copy", `oci-archive:${archive}`, to];
}
