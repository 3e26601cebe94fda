import { copyFile, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { Progress } from "../../build/progress";
import { NodePath } from "../../cni/contract";
import { CRD } from "../support/multus";
import { until } from "../support/until";
import { buildMultus } from "./binaries";
import { kubeconfig } from "./certificates";
import { PROGRAMS_IMAGE } from "./images";
import type { Machine } from "./machine";
import { onDisk, paths } from "./paths";
import type { Kubectl } from "./pods";
import { BIN_DIR, NET_DIR, type TestCluster } from "./suite";

const CHART = "dist/charts/linkerd-multus";
/** Name of the chart, of its release, of the namespace it is installed in, and of its Deployment. */
export const OPERATOR = "linkerd-multus";
const LOG = join(paths.logs, "multus");
/** The configuration that the runtime calls Multus by. */
const MULTUS_CONFIG = "00-multus.conf";

/** An additional network to which Multus attaches a pod. */
export const definition = (namespace: string, name: string, config: object) => ({
  apiVersion: "k8s.cni.cncf.io/v1",
  kind: "NetworkAttachmentDefinition",
  metadata: { name, namespace },
  spec: { config: JSON.stringify({ cniVersion: "1.0.0", name, ...config }) },
});

/** The node's own network. */
interface Network {
  readonly cniVersion: string;
  readonly name: string;
  readonly plugins: readonly [object];
}

/** Multus' configuration before the node's own network, which it calls for every pod. */
async function configuration(): Promise<object> {
  const network = JSON.parse(await readFile(join(onDisk(NET_DIR), "10-cluster.conflist"), "utf8")) as object;
  return {
    cniVersion: "1.0.0",
    name: "multus-cni-network",
    type: "multus",
    capabilities: { portMappings: true },
    namespaceIsolation: true,
    delegates: [network],
    kubeconfig: kubeconfig("admin"),
    logLevel: "verbose",
    logFile: LOG,
  };
}

/** Writes a file in the machine's own /run. */
async function writeInside(machine: Machine, path: string, content: object): Promise<void> {
  const script = 'mkdir -p "$(dirname "$0")" && cat >"$0"';
  await machine.run(["sh", "-c", script, path], { input: JSON.stringify(content, undefined, 2) });
}

/** Name of the auxiliary chain. Its folder lies beside the file of the node's own network. */
const AUXILIARY_CHAIN = basename(NodePath.auxiliaryChainDir);
const NETWORK_DIR = dirname(NodePath.auxiliaryChainDir);

/**
 * Moves the node's own network to where Multus alone looks for it, as on OpenShift. It becomes a single plugin's: Multus
 * 4.2.2 ends pods by a copy of a list without host-local's ranges, which fails
 * (https://github.com/k8snetworkplumbingwg/multus-cni/issues/1449).
 * @returns its file
 */
async function moveNetwork(machine: Machine): Promise<string> {
  const list = join(onDisk(NET_DIR), "10-cluster.conflist");
  const { cniVersion, name, plugins } = JSON.parse(await readFile(list, "utf8")) as Network;
  const path = join(NETWORK_DIR, "10-cluster.conf");
  await writeInside(machine, path, { cniVersion, name, ...plugins[0] });
  await rm(list);
  return path;
}

/** Paths at which Multus' daemon sees directories of the node. */
const HOST = "/host";
const ROOT = "/hostroot";
const DAEMON = "multus-daemon";
const SOCKETS = "/run/multus/socket";
const daemonLabels = { app: "multus" };
const daemonMetadata = { name: "multus", namespace: "kube-system", labels: daemonLabels };

/** The configuration of Multus' daemon, with the settings that OpenShift has. */
const daemonConfiguration = {
  chrootDir: ROOT,
  cniVersion: "1.0.0",
  logLevel: "verbose",
  logToStderr: true,
  cniConfigDir: join(HOST, NET_DIR),
  multusAutoconfigDir: join(HOST, NETWORK_DIR),
  multusConfigFile: "auto",
  // It empties that directory when it starts.
  socketDir: join(HOST, SOCKETS),
  daemonSocketDir: SOCKETS,
  auxiliaryCNIChainName: AUXILIARY_CHAIN,
};

const DAEMON_CONFIG = {
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { ...daemonMetadata, name: "multus-daemon-config" },
  data: { "daemon-config.json": JSON.stringify(daemonConfiguration) },
};

const mounts = [
  { name: "cni", path: NET_DIR, mountPath: join(HOST, NET_DIR) },
  // Multus calls plugins below the node's root by the path that it sees itself.
  { name: "bin", path: BIN_DIR, mountPath: BIN_DIR },
  { name: "run", path: "/run", mountPath: join(HOST, "/run") },
  { name: "cache", path: "/var/lib/cni/multus", mountPath: "/var/lib/cni/multus" },
  { name: "kubelet", path: "/var/lib/kubelet", mountPath: "/var/lib/kubelet" },
  // As containerd names it; the image has no link from /var/run to /run.
  { name: "netns", path: "/run/netns", mountPath: "/var/run/netns" },
  { name: "root", path: "/", mountPath: ROOT },
];

/** Multus' daemon, as its own manifest runs it; its executable is the node's. */
const daemonObjects = [
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRole",
    metadata: { name: "multus" },
    rules: [
      { apiGroups: ["k8s.cni.cncf.io"], resources: ["*"], verbs: ["*"] },
      { apiGroups: [""], resources: ["pods", "pods/status"], verbs: ["get", "list", "update", "watch"] },
      { apiGroups: ["", "events.k8s.io"], resources: ["events"], verbs: ["create", "patch", "update"] },
    ],
  },
  {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: "multus" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "multus" },
    subjects: [{ kind: "ServiceAccount", name: "multus", namespace: "kube-system" }],
  },
  { apiVersion: "v1", kind: "ServiceAccount", metadata: daemonMetadata },
  {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: daemonMetadata,
    spec: {
      selector: { matchLabels: daemonLabels },
      template: {
        metadata: { labels: daemonLabels },
        spec: {
          hostNetwork: true,
          hostPID: true,
          tolerations: [{ operator: "Exists" }],
          serviceAccountName: "multus",
          terminationGracePeriodSeconds: 10,
          containers: [
            {
              name: "kube-multus",
              image: PROGRAMS_IMAGE,
              command: [join(BIN_DIR, DAEMON)],
              env: [
                { name: "MULTUS_NODE_NAME", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } },
                // It wants to know its user, and the image has no /etc/passwd.
                { name: "USER", value: "root" },
                { name: "HOME", value: "/" },
              ],
              securityContext: { privileged: true },
              volumeMounts: [
                ...mounts.map(({ name, mountPath }) => ({ name, mountPath, mountPropagation: "HostToContainer" })),
                { name: "config", mountPath: "/etc/cni/net.d/multus.d", readOnly: true },
              ],
            },
          ],
          volumes: [
            ...mounts.map(({ name, path }) => ({ name, hostPath: { path, type: "DirectoryOrCreate" } })),
            { name: "config", configMap: { name: DAEMON_CONFIG.metadata.name } },
          ],
        },
      },
    },
  },
];

/** How Multus runs: as one program that the runtime calls, or as a daemon with a shim that does. */
export type MultusKind = "thin" | "thick";

/** A call of Multus for a pod. */
interface Attachment {
  readonly verb: string;
  /** The network, as Multus names it. */
  readonly network: string;
  readonly interface: string;
}

/** A cluster whose container runtime calls Multus. */
export class Multus {
  constructor(private readonly cluster: TestCluster) {}

  async install(): Promise<void> {
    await this.prepare("multus");
    await this.configure(await configuration());
  }

  /** Installs Multus for which the node's own network lies where OpenShift's does, and that has an auxiliary chain, still empty. */
  async installAuxiliary(kind: MultusKind): Promise<void> {
    const { kubectl, machine } = this.cluster;
    if (kind === "thin") {
      await this.prepare("multus", "passthru");
      const { delegates: _, ...others } = (await configuration()) as { delegates: unknown };
      const clusterNetwork = await moveNetwork(machine);
      await this.configure({ ...others, clusterNetwork, auxiliaryCNIChainName: AUXILIARY_CHAIN });
      return;
    }
    await this.prepare("multus-shim", DAEMON, "passthru");
    await moveNetwork(machine);
    await kubectl.apply(DAEMON_CONFIG, ...daemonObjects);
    await this.daemonReady();
  }

  /** Waits until Multus' daemon has written the configuration that the runtime calls it by. */
  private async daemonReady(): Promise<void> {
    const { kubectl } = this.cluster;
    const where = "--namespace=kube-system";
    try {
      await kubectl.run("rollout", "status", where, "daemonset/multus", "--timeout=180s");
      await until("Multus' configuration", async () => (await readdir(onDisk(NET_DIR))).includes(MULTUS_CONFIG));
    } catch (error) {
      const log = await kubectl.run("logs", where, "daemonset/multus").catch(String);
      throw new Error(`${await kubectl.run("events", where)}\n${log}`, { cause: error });
    }
  }

  /** Puts programs of Multus on the node, and its definitions' kind into the cluster. */
  private async prepare(...programs: readonly string[]): Promise<void> {
    const { kubectl } = this.cluster;
    const built = await buildMultus(new Progress(process.stdout));
    await kubectl.apply(CRD);
    await kubectl.run("wait", "--for=condition=Established", `crd/${CRD.metadata.name}`, "--timeout=180s");
    for (const program of programs) {
      const from = program === "passthru" ? "passthru-cni" : program;
      await copyFile(join(built, from), join(onDisk(BIN_DIR), program));
    }
  }

  private async configure(config: object): Promise<void> {
    await writeFile(join(onDisk(NET_DIR), MULTUS_CONFIG), JSON.stringify(config, undefined, 2));
  }

  /** Installs the chart by the README's command, and waits until its pods are ready. */
  async installOperator(...options: string[]): Promise<string> {
    const said = await this.helm("install", "--create-namespace", ...options);
    await this.rolledOut();
    return said;
  }

  async helm(verb: "install" | "upgrade", ...options: string[]): Promise<string> {
    return this.cluster.helm(verb, OPERATOR, "-n", OPERATOR, CHART, ...options);
  }

  async rolledOut(): Promise<void> {
    await this.cluster.kubectl.run(
      "rollout",
      "status",
      `--namespace=${OPERATOR}`,
      `deployment/${OPERATOR}`,
      "--timeout=180s",
    );
  }

  /** Makes a namespace and waits until pods can be created in it. */
  async namespace(name: string, annotations: Readonly<Record<string, string>> = {}): Promise<void> {
    const { kubectl } = this.cluster;
    await kubectl.apply({ apiVersion: "v1", kind: "Namespace", metadata: { name, annotations } });
    await until(`the service account of ${name}`, async () => {
      const found = await kubectl.run("get", "serviceaccount", `--namespace=${name}`, "--output=name");
      return found.includes("default");
    });
  }

  /** Configurations of the operator's definitions, by namespace. */
  async configs(): Promise<Readonly<Record<string, Readonly<Record<string, unknown>>>>> {
    const { items } = await this.cluster.kubectl.json<{
      items: { metadata: { namespace: string }; spec: { config: string } }[];
    }>("get", "net-attach-def", "--all-namespaces", `--selector=app.kubernetes.io/managed-by=${OPERATOR}`);
    return Object.fromEntries(items.map(({ metadata, spec }) => [metadata.namespace, JSON.parse(spec.config)]));
  }

  /** Waits until a namespace has its definition. @returns its configuration */
  async defined(namespace: string): Promise<Readonly<Record<string, unknown>>> {
    await until(`the definition in ${namespace}`, async () => namespace in (await this.configs()));
    return (await this.configs())[namespace] ?? {};
  }

  /** The pod that writes the definitions. */
  async leader(): Promise<string> {
    let holder = "";
    await until("a leader", async () => {
      const { spec } = await this.cluster.kubectl.json<{ spec: { holderIdentity?: string } }>(
        "get",
        "lease",
        OPERATOR,
        `--namespace=${OPERATOR}`,
      );
      [holder = ""] = (spec.holderIdentity ?? "").split("_");
      return holder !== "";
    });
    return holder;
  }

  async log(): Promise<string> {
    return readFile(LOG, "utf8");
  }

  /**
   * What Multus complains of. The kubelet may stop a pod's sandbox more than once; of the pod, and of what it kept for
   * its removal, Multus then finds nothing, and says so twice.
   */
  async errors(): Promise<readonly string[]> {
    const again = /GetPod failed: pod not found|failed to get the cached delegates file: .*: no such file or directory/;
    return (await this.log()).split("\n").filter((line) => line.includes("[error]") && !again.test(line));
  }

  /** Sandboxes whose delegates Multus has saved for their removal. */
  async sandboxes(): Promise<readonly string[]> {
    const entries = await readdir(onDisk("/var/lib/cni/multus"), { withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
  }

  /** The calls of Multus for a pod, in order. */
  async attachments(namespace: string, pod: string): Promise<readonly Attachment[]> {
    const line = new RegExp(`\\[verbose\\] (Add|Del): ${namespace}:${pod}:[^:]*:(.*?):(\\S+) \\{`, "g");
    const found = (await this.log()).matchAll(line);
    return [...found].map(([, verb = "", network = "", name = ""]) => ({ verb, network, interface: name }));
  }

  /** The rules in a pod's network namespace. */
  async rules(namespace: string, pod: string): Promise<string> {
    const added = new RegExp(`Add: ${namespace}:${pod}:.*"sandbox":"([^"]+)"`);
    const [, sandbox = ""] = added.exec(await this.log()) ?? [];
    return this.cluster.machine.run(["nsenter", `--net=${sandbox}`, "nft", "list", "ruleset"]);
  }
}

/** The API server's answers. */
export class Admissions<T> {
  readonly admitted: T[] = [];
  readonly refused: string[] = [];

  /** Keeps creating an object by dry runs while `work` lasts. */
  static async during<T>(kubectl: Kubectl, object: object, work: () => Promise<void>): Promise<Admissions<T>> {
    const admissions = new Admissions<T>();
    let over = false;
    const ask = async () => {
      while (!over) await admissions.ask(kubectl, object);
    };
    const asking = ask();
    await work().finally(() => {
      over = true;
      return asking;
    });
    return admissions;
  }

  private async ask(kubectl: Kubectl, object: object): Promise<void> {
    const { admitted, refused } = this;
    await kubectl.dryRun<T>(object).then(
      (answer) => admitted.push(answer),
      (error) => refused.push(String(error)),
    );
  }
}
