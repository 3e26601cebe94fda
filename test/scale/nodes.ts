/** Nodes that are directories, with the real programs of a node's pod as processes. */
import { type ChildProcess, spawn } from "node:child_process";
import { chownSync, closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { outputs } from "../../build/paths";
import { LOOKUP_SOCKET_NAME } from "../../cni/contract";
import { PLUGIN_TYPE } from "../../cni/stanza";
import type { CallRecord } from "../../host/call-log";
import type { ProgramName } from "../support/program";
import type { RealApi } from "../support/real-api";

export const NAMESPACE = "linkerd-cni";
const DAEMON_SET = "linkerd-cni";
const ACCOUNT = "linkerd-cni";
const LIST = '{"cniVersion":"1.0.0","name":"k","plugins":[\n  {"type":"bridge"}\n]}\n';
const LIST_FILE = "net.d/10-k.conflist";
/** Characters of the names that Kubernetes makes. */
const ALPHABET = "bcdfghjklmnpqrstvwxz2456789";
/** Each node's processes run as a separate user: the kernel counts inotify watches per user. */
const FIRST_USER = 200_000;
/** Below the ports that the kernel gives to clients. */
const FIRST_PORT = 10_000;

/** The kubelet and the DaemonSet's controller have time. */
const longDeadline = { deadlineMs: 120_000 };

/** Settings from the chart's ConfigMap and DaemonSet, the same for all nodes. */
interface Rollout {
  readonly api: RealApi;
  readonly stanza: string;
  /** Directory that holds the plugin, as the image does. */
  readonly image: string;
  /** UID of the DaemonSet. */
  readonly daemonSet: string;
}

interface RunningPod {
  readonly name: string;
  readonly children: readonly ChildProcess[];
}

/** One node, and the pod of the DaemonSet on it. */
export class ScaleNode {
  readonly name: string;
  private readonly directory: string;
  private readonly user: number;
  private pod: RunningPod | undefined;
  private pods = 0;

  /** @param place parent of all nodes' directories */
  constructor(
    private readonly index: number,
    place: string,
    private readonly rollout: Rollout,
  ) {
    this.name = `node-${index}`;
    this.directory = join(place, this.name);
    this.user = FIRST_USER + index;
    for (const name of ["", "net.d", "bin", "account"]) this.own(name, (path) => mkdirSync(path));
    this.own(LIST_FILE, (path) => writeFileSync(path, LIST));
    this.own("bin/bridge", (path) => writeFileSync(path, ""));
    this.own("account/ca.crt", (path) => writeFileSync(path, rollout.api.admin.ca ?? ""));
  }

  /** Creates the files that the node's own user may change. */
  private own(name: string, make: (path: string) => void): void {
    const path = join(this.directory, name);
    make(path);
    chownSync(path, this.user, this.user);
  }

  /** Starts a pod, as the DaemonSet's controller and the kubelet do; the former one keeps running. */
  async start(): Promise<void> {
    const { api, daemonSet } = this.rollout;
    const name = `${DAEMON_SET}-${suffix(this.index * 100 + this.pods++)}`;
    const made = await api.json<{ metadata: { uid: string } }>({
      ...longDeadline,
      method: "POST",
      path: `/api/v1/namespaces/${NAMESPACE}/pods`,
      body: {
        metadata: {
          name,
          labels: { "k8s-app": DAEMON_SET },
          ownerReferences: [
            { apiVersion: "apps/v1", kind: "DaemonSet", name: DAEMON_SET, uid: daemonSet, controller: true },
          ],
        },
        spec: {
          nodeName: this.name,
          serviceAccountName: ACCOUNT,
          containers: [{ name: "install-cni", image: "none" }],
        },
      },
    });
    const { uid } = made.metadata;
    const bound = { kind: "Pod", apiVersion: "v1", name, uid };
    const { status } = await api.json<{ status: { token: string } }>({
      ...longDeadline,
      method: "POST",
      path: `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/${ACCOUNT}/token`,
      body: { spec: { expirationSeconds: 7200, boundObjectRef: bound } },
    });
    this.own("account/token", (path) => writeFileSync(path, status.token));
    this.pod = { name, children: [this.install(name, uid), this.repair(name)] };
  }

  /** Starts another pod and, once that has been there for a moment, ends the former one: maxSurge is 1. */
  async replace(settled: () => Promise<unknown>): Promise<void> {
    const former = this.pod;
    await this.start();
    await settled();
    await this.end(former);
  }

  /** Ends the pod. */
  async stop(): Promise<void> {
    await this.end(this.pod);
    this.pod = undefined;
  }

  private async end(pod: RunningPod | undefined): Promise<void> {
    if (pod === undefined) return;
    await Promise.all(pod.children.map(ended));
    const path = `/api/v1/namespaces/${NAMESPACE}/pods/${pod.name}`;
    await this.rollout.api.request({ ...longDeadline, method: "DELETE", path, body: { gracePeriodSeconds: 0 } });
  }

  kill(): void {
    for (const child of this.pod?.children ?? []) child.kill("SIGKILL");
  }

  /** Whether the plugin is chained, and the installer answers its look-ups. */
  get isInstalled(): boolean {
    return this.read(LIST_FILE).includes('"linkerd-cni"') && existsSync(join(this.runDir, LOOKUP_SOCKET_NAME));
  }

  /** Directory of the call log and the look-up socket. */
  get runDir(): string {
    return this.directory;
  }

  /** The plugin's configuration, as a runtime passes it. */
  get stanza(): object {
    const list = JSON.parse(this.read(LIST_FILE)) as { plugins: { readonly type: string }[] };
    const stanza = list.plugins.find(({ type }) => type === PLUGIN_TYPE);
    if (stanza === undefined) throw new Error(`${this.name} has no plugin in its chain`);
    return stanza;
  }

  /** The records of the plugin's calls. */
  get calls(): readonly CallRecord[] {
    return this.read("plugin.log")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as CallRecord);
  }

  private read(name: string): string {
    return readFileSync(join(this.directory, name), "utf8");
  }

  /** Whether a program of the pod is not there any more. */
  get hasEnded(): boolean {
    return (this.pod?.children ?? []).some(({ exitCode, signalCode }) => exitCode !== null || signalCode !== null);
  }

  /** The programs' output. */
  get log(): string {
    return PROGRAMS.map((program) => this.read(`${program}.log`)).join("");
  }

  /** Process ids of the pod's programs: installer and repair controller. */
  get pids(): readonly number[] {
    return (this.pod?.children ?? []).map(({ pid = 0 }) => pid);
  }

  private install(pod: string, uid: string): ChildProcess {
    const { api, image, stanza } = this.rollout;
    return this.run("install", [], {
      ...access(api),
      CONTAINER_MOUNT_PREFIX: "",
      DEST_CNI_NET_DIR: join(this.directory, "net.d"),
      DEST_CNI_BIN_DIR: join(this.directory, "bin"),
      CONTAINER_CNI_BIN_DIR: image,
      SERVICE_ACCOUNT_DIR: join(this.directory, "account"),
      PLUGIN_LOG: join(this.directory, "plugin.log"),
      CNI_CACHE_DIR: join(this.directory, "cache"),
      CNI_NETWORK_CONFIG: stanza,
      POD_NAMESPACE: NAMESPACE,
      POD_NAME: pod,
      POD_UID: uid,
      NODE_NAME: this.name,
    });
  }

  private repair(pod: string): ChildProcess {
    const { api, stanza } = this.rollout;
    // The former pod's still has its own.
    const port = FIRST_PORT + 2 * this.index + (this.pods % 2);
    return this.run("repair", [`--admin-addr=127.0.0.1:${port}`, "--installer-ready="], {
      ...access(api),
      SERVICE_ACCOUNT_DIR: join(this.directory, "account"),
      CNI_NETWORK_CONFIG: stanza,
      LINKERD_CNI_REPAIR_CONTROLLER_NODE_NAME: this.name,
      LINKERD_CNI_REPAIR_CONTROLLER_POD_NAME: pod,
    });
  }

  private run(program: ProgramName, args: readonly string[], env: Readonly<Record<string, string>>): ChildProcess {
    const log = openSync(join(this.directory, `${program}.log`), "a");
    try {
      return spawn(outputs.plugin, [program, ...args], {
        env,
        stdio: ["ignore", log, log],
        uid: this.user,
        gid: this.user,
      });
    } finally {
      closeSync(log);
    }
  }
}

const PROGRAMS = ["install", "repair"] as const;

const access = ({ admin }: RealApi) => ({
  KUBERNETES_SERVICE_HOST: admin.host,
  KUBERNETES_SERVICE_PORT: String(admin.port),
});

function suffix(index: number): string {
  let text = "";
  for (let rest = index; text.length < 5; rest = Math.floor(rest / ALPHABET.length)) {
    text += ALPHABET[rest % ALPHABET.length];
  }
  return text;
}

/** Ends a process as the kubelet does. */
function ended(child: ChildProcess): Promise<unknown> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  const end = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  return end;
}
