/**
 * A node with a container runtime and nothing of Kubernetes: the runtime is asked by its own interface, as a kubelet
 * would. Mounts, network and processes are the node's own, and gone with it.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { copyFile, mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { outputs } from "../../build/paths";
import { CALL_LOG, InstallerVariable, NodePath, NriVariable, PodVariable } from "../../cni/contract";
import { programs } from "../cluster/binaries";
import { makeCgroups, removeCgroups } from "../cluster/cgroups";
import { ContainerRuntime } from "../cluster/cri";
import { testImage } from "../cluster/images";
import { Machine } from "../cluster/machine";
import { overlay } from "../cluster/mounts";
import { paths } from "../cluster/paths";
import { crioCommand, crioConfig, crioImport, lacksCrio, PAUSE } from "../cluster/runtimes";
import { TestNode } from "../kernel/installer-node";
import { ApiProcess } from "./api-process";
import { defaultStanza } from "./default-stanza";
import { missing, which } from "./requirements";
import { until } from "./until";

/** Paths of a runtime on a test's node. */
interface Layout {
  /** Directory of the runtime's state. */
  readonly root: string;
  readonly netDir: string;
  readonly binDir: string;
  readonly socket: string;
  readonly nriSocket: string;
  /** Archive of the image that holds a pod's namespaces. */
  readonly image: string;
  /** Where CRI-O keeps namespaces, in a directory for each kind. */
  readonly namespacesDir: string;
}

interface Runtime {
  /** What the machine lacks for it, in words. */
  readonly lacks: () => string | undefined;
  /** Version of the node's CNI configuration: the newest that the runtime knows. */
  readonly cniVersion: "1.0.0" | "1.1.0";
  readonly config: (layout: Layout) => string;
  /** Directory of its own executables, which come before the machine's. */
  readonly programs?: string;
  readonly command: (config: string) => readonly string[];
  /** Gives it the image, before it starts or once it answers. */
  readonly load: (layout: Layout) => { readonly when: "before" | "after"; readonly command: readonly string[] };
}

const RUN = "/run/runtime";
const SOCKET = `${RUN}/runtime.sock`;
const NRI_SOCKET = `${NodePath.nriDir}/nri.sock`;

/** CNI plugins of a version that knows CNI 1.1, built with a containerd. */
const BUILT = join(paths.binaries, "containerd-2.3");

const ctr = ({ socket, image }: Layout) =>
  ({
    when: "after",
    command: ["ctr", `--address=${socket}`, "--namespace=k8s.io", "images", "import", image],
  }) as const;

const crioStorage = ({ root }: Layout) => ({ root, run: `${RUN}/storage`, driver: "vfs" });

const built = (version: string): Runtime => ({
  lacks: () =>
    existsSync(join(paths.binaries, `containerd-${version}`)) ? undefined : "npm run cluster -- build (containerd)",
  cniVersion: "1.1.0",
  programs: join(paths.binaries, `containerd-${version}`),
  config: ({ root, socket, netDir, binDir, nriSocket }) => `version = 3
root = "${root}"
state = "${RUN}/state"
[grpc]
  address = "${socket}"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "${PAUSE}"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["${binDir}"]
    conf_dir = "${netDir}"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.nri.v1.nri"]
  socket_path = "${nriSocket}"
`,
  command: (config) => ["containerd", "--config", config],
  load: ctr,
});

/** Every runtime that tests run on, by its name in docs/hosts.md. */
const RUNTIMES = {
  "containerd 1.6": {
    lacks: () => undefined,
    cniVersion: "1.0.0",
    config: ({ root, socket, netDir, binDir }) => `version = 2
root = "${root}"
state = "${RUN}/state"
[grpc]
  address = "${socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${PAUSE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${binDir}"
    conf_dir = "${netDir}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
`,
    command: (config) => ["/usr/bin/containerd", "--config", config],
    load: ctr,
  },
  "containerd 2.2": built("2"),
  "containerd 2.3": built("2.3"),
  "CRI-O 1.34": {
    lacks: lacksCrio,
    cniVersion: "1.1.0",
    config: (layout) => crioConfig({ ...layout, run: RUN, storage: crioStorage(layout), runc: `${which("runc")}` }),
    command: crioCommand,
    load: (layout) => ({ when: "before", command: crioImport(crioStorage(layout), layout.image, PAUSE) }),
  },
} as const satisfies Readonly<Record<string, Runtime>>;

export type RuntimeName = keyof typeof RUNTIMES;
export const RUNTIME_NAMES = Object.keys(RUNTIMES) as RuntimeName[];

/** What the machine lacks for a node with a runtime, in words. */
export function runtimeMissing(name: RuntimeName): string | undefined {
  return (
    missing({ root: true, programs: ["containerd", "runc", "unshare", "nsenter", "mount", "ip", "nft"] }) ??
    (existsSync(programs) && existsSync(BUILT) ? undefined : "npm run cluster -- build") ??
    RUNTIMES[name].lacks()
  );
}

/** The injector's annotations, which also make a pod with this name meshed for the API server of these tests. */
export const MESHED = "meshed";
const INJECTED = {
  "linkerd.io/created-by": "linkerd/proxy-injector edge-26.7.1",
  "linkerd.io/proxy-version": "edge-26.7.1",
};

/** Name of the node's network, and with it of the folder of its drop-ins. */
export const NETWORK = "pods";
/** The node's configuration, as its primary plugin has written it. */
export const CONFIGURATION = "10-pods.conflist";
const SUBNET = "10.88.0.0/16";

const primary = (cniVersion: string) => `{
  "cniVersion": "${cniVersion}",
  "name": "${NETWORK}",
  "plugins": [
    {
      "type": "bridge",
      "bridge": "pods0",
      "isDefaultGateway": true,
      "ipam": { "type": "host-local", "dataDir": "/run/ipam", "ranges": [[{ "subnet": "${SUBNET}" }]] }
    }
  ]
}
`;

/** A plugin in place of another vendor's: it passes on its input. Its calls are recorded. */
export const WITNESS = "witness";
const RUNTIME = "runtime";
const INSTALLER = "installer";
const NRI = "nri";
const HEALTH_PORT = 9990;
const NRI_HEALTH_PORT = 9989;
const NODE_NAME = "node-1";

/** A pod's sandbox that runs. */
export interface Sandbox {
  readonly id: string;
  readonly address: string;
  /** Path of its network namespace on the node. */
  readonly netns: string;
}

export class RuntimeNode {
  private started = 0;
  /** Installers that an upgrade has started, since the last installation. */
  private upgrades = 0;

  private constructor(
    /** Its directories. */
    readonly directories: TestNode,
    readonly machine: Machine,
    readonly api: ApiProcess,
    private readonly cgroup: string,
    private readonly layout: Layout,
    private command: readonly string[],
    private client: ContainerRuntime,
  ) {}

  /**
   * @param name of a runtime for which {@link runtimeMissing} misses nothing
   * @param options.namespacesDir where CRI-O keeps namespaces. @default the parent of the chart's `nri.netnsDir`
   */
  static async start(name: RuntimeName, { namespacesDir = dirname(NodePath.netnsDir) } = {}): Promise<RuntimeNode> {
    const runtime: Runtime = RUNTIMES[name];
    const directories = new TestNode({ [CONFIGURATION]: primary(runtime.cniVersion) }, await readFile(outputs.plugin));
    const { root, netDir, binDir } = directories;
    const state = join(root, "machine");
    for (const each of ["bin", "pids", "logs", "home", "runtime"]) await mkdir(join(state, each), { recursive: true });
    const image = join(state, "pause.tar");
    await writeFile(image, await testImage(PAUSE));
    const layout = {
      root: join(state, "runtime"),
      netDir,
      binDir,
      socket: SOCKET,
      nriSocket: NRI_SOCKET,
      image,
      namespacesDir,
    };
    const command = await configure(runtime, layout, state);
    for (const type of ["host-local", "loopback"]) await copyFile(join(BUILT, type), join(binDir, type));
    await record(directories, "bridge", "bridge");
    await record(directories, WITNESS, "portmap");
    const cgroup = `linkerd-cni-runtime-${createHash("sha256").update(root).digest("hex").slice(0, 8)}`;
    await makeCgroups(cgroup);
    const machine = await Machine.start(programs, state);
    try {
      await mountOwn(machine, state);
      const { when, command: load } = runtime.load(layout);
      if (when === "before") await machine.run(load);
      await machine.daemon(RUNTIME, command);
      const client = await connect(machine, cgroup);
      if (when === "after") await machine.run(load);
      const api = await ApiProcess.open(root, { beside: machine.pid, runtime: await versionOf(client) });
      const node = new RuntimeNode(directories, machine, api, cgroup, layout, command, client);
      await node.networkReady();
      return node;
    } catch (error) {
      const log = await readFile(join(state, "logs", RUNTIME), "utf8").catch(() => "");
      await machine.stop();
      await removeCgroups(cgroup);
      throw new Error(`${name} does not start:\n${log.slice(-4000)}`, { cause: error });
    }
  }

  async close(): Promise<void> {
    this.api.close();
    this.client.close();
    await this.machine.stop();
    await removeCgroups(this.cgroup);
    this.directories.delete();
  }

  /** Waits until the runtime has a network, as a kubelet does before it starts pods. */
  async networkReady(): Promise<void> {
    await until("the node's network", async () => (await this.client.networkProblem()) === undefined);
  }

  /** Why the runtime would have the node NotReady; undefined if it would not. */
  networkProblem(): Promise<string | undefined> {
    return this.client.networkProblem();
  }

  /**
   * Ends the runtime and starts it again; pods go on.
   * @param options.isReadyThen waits until it has a network. @default true
   */
  async restart({ isReadyThen = true } = {}): Promise<void> {
    this.client.close();
    await this.machine.endDaemon(RUNTIME);
    await this.machine.daemon(RUNTIME, this.command);
    this.client = await connect(this.machine, this.cgroup);
    if (isReadyThen) await this.networkReady();
  }

  /** Puts another runtime in the place of the one that runs, of the same kind; pods go on. */
  async replaceRuntime(name: RuntimeName): Promise<void> {
    const state = join(this.directories.root, "machine");
    await this.machine.endDaemon(RUNTIME);
    for (const program of await readdir(join(state, "bin"))) await rm(join(state, "bin", program));
    this.command = await configure(RUNTIMES[name], this.layout, state);
    await this.restart();
    await this.api.replaceRuntime(await versionOf(this.client));
  }

  /** Starts a pod's sandbox. @param name {@link MESHED}, or that of a pod that is not meshed */
  async run(name: string): Promise<Sandbox> {
    const id = await this.client.run({
      namespace: "shop",
      name,
      uid: `uid-${this.started++}`,
      labels: {},
      annotations: name === MESHED ? INJECTED : {},
    });
    const { address, netns } = await this.client.status(id);
    return { id, address, netns };
  }

  /** Address of a sandbox, as the runtime would tell a kubelet now. */
  async addressOf({ id }: Sandbox): Promise<string> {
    return (await this.client.status(id)).address;
  }

  /** Ends a sandbox and removes it. */
  remove({ id }: Sandbox): Promise<void> {
    return this.client.remove(id);
  }

  /** Whether a pod's traffic goes through its proxy. */
  async isRedirected({ netns }: Sandbox): Promise<boolean> {
    const rules = await this.machine.run(["nsenter", `--net=${netns}`, "nft", "list", "ruleset"]);
    return rules.includes("redirect to :4143") && rules.includes("redirect to :4140");
  }

  /** Verbs by which the runtime has called the primary plugin, or {@link WITNESS}, so far; VERSION left out. */
  async calls(type: "bridge" | typeof WITNESS): Promise<readonly string[]> {
    const text = await readFile(callsOf(this.directories, type), "utf8").catch(() => "");
    return text.split("\n").filter((verb) => verb !== "" && verb !== "VERSION");
  }

  /**
   * Calls the chained plugin as a runtime would.
   * @param about the sandbox that the verb is about, unless it is about the node
   * @param more configuration
   * @returns exit code and output
   */
  async call(verb: string, about?: Sandbox, more: object = {}): Promise<readonly [number, string]> {
    const { binDir } = this.directories;
    const { name, cniVersion, plugins } = JSON.parse(this.directories.read(CONFIGURATION));
    const stanza = plugins.find(({ type }: { type: string }) => type === "linkerd-cni");
    const environment: Record<string, string> = { CNI_COMMAND: verb, CNI_PATH: binDir };
    let prevResult: object | undefined;
    if (about !== undefined) {
      Object.assign(environment, { CNI_CONTAINERID: about.id, CNI_NETNS: about.netns, CNI_IFNAME: "eth0" });
      // libcni's record of each ADD.
      const cached = await this.machine.run(["cat", `${NodePath.cniCacheDir}/results/${name}-${about.id}-eth0`]);
      prevResult = JSON.parse(cached).result;
    }
    const pairs = Object.entries(environment).map(([key, value]) => `${key}=${value}`);
    const command = ["env", "--ignore-environment", ...pairs, join(binDir, "linkerd-cni")];
    // Verbs about the node have no meaning before.
    const version = about === undefined ? "1.1.0" : cniVersion;
    const input = JSON.stringify({ ...stanza, name, cniVersion: version, prevResult, ...more });
    return this.machine.run(command, { input }).then(
      (output) => [0, output],
      (error: Error) => [1, error.message],
    );
  }

  /** Starts the installer, and waits until it is ready. */
  async install(environment: Readonly<Record<string, string>> = {}): Promise<void> {
    this.upgrades = 0;
    await this.startInstaller(environment);
  }

  /** Starts the next installer, which takes the node from the one that runs, and then ends that, as a rollout does. */
  async upgrade(environment: Readonly<Record<string, string>> = {}): Promise<void> {
    const former = this.installer;
    this.upgrades += 1;
    await this.startInstaller(environment);
    await this.machine.endDaemon(former);
  }

  private get installer(): string {
    return this.upgrades === 0 ? INSTALLER : `${INSTALLER}-${this.upgrades}`;
  }

  private async startInstaller(environment: Readonly<Record<string, string>>): Promise<void> {
    const { netDir, binDir, imageDir, accountDir } = this.directories;
    const { server, ca } = await this.api.server();
    await writeFile(join(accountDir, "token"), "secret");
    await writeFile(join(accountDir, "ca.crt"), ca);
    const healthPort = String(HEALTH_PORT + this.upgrades);
    await this.daemon(this.installer, "install", {
      [InstallerVariable.mountPrefix]: "",
      [InstallerVariable.netDir]: netDir,
      [InstallerVariable.binDir]: binDir,
      [InstallerVariable.pluginDir]: imageDir,
      [InstallerVariable.pluginLog]: CALL_LOG,
      [InstallerVariable.cniCacheDir]: NodePath.cniCacheDir,
      [InstallerVariable.healthPort]: healthPort,
      [InstallerVariable.stopPolicy]: "always",
      [InstallerVariable.stanza]: await defaultStanza(outputs.manifests, false),
      [PodVariable.nodeName]: NODE_NAME,
      [PodVariable.podName]: this.installer,
      // Even if the runtime reads drop-ins.
      CHAINING: "edit",
      SERVICE_ACCOUNT_DIR: accountDir,
      KUBERNETES_SERVICE_HOST: server.hostname,
      KUBERNETES_SERVICE_PORT: server.port,
      ...environment,
    });
    await this.becomesReady(this.installer, healthPort);
  }

  /** Ends the installer, which restores the node's files. */
  uninstall(): Promise<void> {
    return this.machine.endDaemon(this.installer);
  }

  /** Starts the NRI plugin. */
  async startNri(): Promise<void> {
    await this.daemon(NRI, "nri", {
      [NriVariable.socketDir]: NodePath.nriDir,
      [NriVariable.netnsDir]: NodePath.netnsDir,
      [NriVariable.index]: "10",
      [NriVariable.port]: String(NRI_HEALTH_PORT),
      [NriVariable.stanza]: await defaultStanza(outputs.manifests, false),
    });
  }

  /** Waits until the NRI plugin has looked at all pods. */
  nriReady(): Promise<void> {
    return this.becomesReady(NRI, String(NRI_HEALTH_PORT));
  }

  /** Why the NRI plugin is not ready; undefined if it is. */
  async nriProblem(): Promise<string | undefined> {
    const send = String.raw`printf 'GET /ready HTTP/1.1\r\nHost: nri\r\nConnection: close\r\n\r\n'`;
    const ask = `exec 3<>/dev/tcp/127.0.0.1/${NRI_HEALTH_PORT}; ${send} >&3; cat <&3`;
    const answer = await this.machine.run(["bash", "-c", ask]);
    return answer.includes(" 503 ") ? answer : undefined;
  }

  stopNri(): Promise<void> {
    return this.machine.endDaemon(NRI);
  }

  /** The log of one of our programs so far. */
  log(program: typeof INSTALLER | typeof NRI): Promise<string> {
    return this.logOf(program === INSTALLER ? this.installer : program);
  }

  private logOf(daemon: string): Promise<string> {
    return readFile(join(this.directories.root, "machine", "logs", daemon), "utf8");
  }

  /** Starts a program of the executable on the node, with only the given variables in its environment. */
  private async daemon(name: string, program: string, environment: Readonly<Record<string, string>>): Promise<void> {
    const pairs = Object.entries(environment).map(([key, value]) => `${key}=${value}`);
    await this.machine.daemon(name, ["env", "--ignore-environment", ...pairs, outputs.plugin, program]);
  }

  private async becomesReady(program: string, port: string): Promise<void> {
    const ask = ["busybox", "wget", "-q", "-O", "-", `http://127.0.0.1:${port}/ready`];
    const answers = async () => {
      await this.machine.run(ask);
      return true;
    };
    await until(`${program} to be ready`, answers).catch(async (error: Error) => {
      throw new Error(`${error.message}:\n${await this.logOf(program)}`);
    });
  }
}

const callsOf = ({ root }: TestNode, type: string) => join(root, `calls-${type}`);

/** Writes a runtime's configuration, and puts its executables before the machine's. @returns the command that starts it */
async function configure(runtime: Runtime, layout: Layout, state: string): Promise<readonly string[]> {
  const config = join(state, "runtime.config");
  await writeFile(config, runtime.config(layout));
  for (const program of runtime.programs === undefined ? [] : await readdir(runtime.programs)) {
    await symlink(join(runtime.programs ?? "", program), join(state, "bin", program));
  }
  return runtime.command(config);
}

/** As a kubelet has it in the Node. */
const versionOf = async (client: ContainerRuntime): Promise<string> => (await client.version()).replace(/ v?/, "://");

/** Puts one of the CNI project's plugins on the node, and records its calls. */
async function record(node: TestNode, type: string, plugin: string): Promise<void> {
  const script = `#!/bin/sh\necho "$CNI_COMMAND" >>"${callsOf(node, type)}"\nexec "${join(BUILT, plugin)}"\n`;
  await writeFile(join(node.binDir, type), script, { mode: 0o755 });
}

/** Gives a machine its own directories in place of host directories that programs would write to. */
async function mountOwn(machine: Machine, state: string): Promise<void> {
  const layers = join(state, "layers");
  const commands = [
    ["mount", "--make-rshared", "/"],
    ["mount", "-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"],
    ["mkdir", "-p", RUN, layers, "/run/lock", NodePath.runDir, NodePath.netnsDir, NodePath.nriDir],
    ["mount", "-t", "tmpfs", "tmpfs", layers],
    ...["/etc", "/var"].flatMap((directory) => overlay(directory, join(layers, basename(directory)))),
    ["mkdir", "-p", NodePath.cniCacheDir],
    ["mount", "-t", "tmpfs", "tmpfs", NodePath.cniCacheDir],
    ["ip", "link", "set", "lo", "up"],
  ];
  for (const command of commands) await machine.run(command);
}

/** Waits until the runtime answers. */
async function connect(machine: Machine, cgroup: string): Promise<ContainerRuntime> {
  let client: ContainerRuntime | undefined;
  await until("the container runtime", async () => {
    const tried = new ContainerRuntime(machine.outside(SOCKET), cgroup);
    const answers = await tried.version().then(
      () => true,
      () => false,
    );
    if (answers) client = tried;
    else tried.close();
    return answers;
  });
  return client as ContainerRuntime;
}
