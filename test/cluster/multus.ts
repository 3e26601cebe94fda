import { copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Progress } from "../../build/progress";
import { CRD } from "../support/multus";
import { buildMultus, buildPassthru } from "./binaries";
import { kubeconfig } from "./certificates";
import { onDisk, paths } from "./paths";
import { type Kubectl, until } from "./pods";
import { BIN_DIR, NET_DIR, type TestCluster } from "./suite";

const CHART = "dist/charts/linkerd-multus";
/** Name of the chart, of its release, of the namespace it is installed in, and of its Deployment. */
export const OPERATOR = "linkerd-multus";
const LOG = join(paths.logs, "multus");

/** A network to which Multus attaches a pod besides its own. */
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

/** Name of the auxiliary chain, and its folder on the node: beside the file that clusterNetwork names. */
const AUXILIARY_CHAIN = "vendors";
export const AUXILIARY_DIR = join(NET_DIR, AUXILIARY_CHAIN);

/**
 * Multus' configuration with an auxiliary chain, for which the node's own network has to be named by its file. It is a
 * single plugin's, as on OpenShift: Multus 4.2.2 ends pods by a copy of a list without host-local's ranges, which fails
 * (https://github.com/k8snetworkplumbingwg/multus-cni/issues/1449).
 */
async function withAuxiliaryChain(): Promise<object> {
  const { delegates, ...others } = (await configuration()) as { delegates: readonly [Network] };
  const [{ cniVersion, name, plugins }] = delegates;
  const clusterNetwork = join(NET_DIR, "20-cluster.conf");
  await writeFile(onDisk(clusterNetwork), JSON.stringify({ cniVersion, name, ...plugins[0] }, undefined, 2));
  return { ...others, clusterNetwork, auxiliaryCNIChainName: AUXILIARY_CHAIN };
}

/** What Multus did to a pod. */
export interface Attachment {
  readonly verb: string;
  /** The network, as Multus names it. */
  readonly network: string;
  readonly interface: string;
}

/** A cluster in which Multus is what the container runtime calls. */
export class Multus {
  constructor(private readonly cluster: TestCluster) {}

  /** @param auxiliary with an auxiliary chain, whose folder is empty */
  async install({ auxiliary = false } = {}): Promise<void> {
    const { kubectl } = this.cluster;
    if (auxiliary) {
      await mkdir(onDisk(AUXILIARY_DIR));
      const passthru = await buildPassthru(new Progress(process.stdout));
      await copyFile(passthru, join(onDisk(BIN_DIR), "passthru"));
    }
    const built = await buildMultus(new Progress(process.stdout));
    await kubectl.apply(CRD);
    await kubectl.run("wait", "--for=condition=Established", `crd/${CRD.metadata.name}`, "--timeout=30s");
    await copyFile(built, join(onDisk(BIN_DIR), "multus"));
    const config = await (auxiliary ? withAuxiliaryChain() : configuration());
    await writeFile(join(onDisk(NET_DIR), "00-multus.conf"), JSON.stringify(config, undefined, 2));
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
      "--timeout=90s",
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

  /** Sandboxes for whose removal Multus keeps what it called. */
  async sandboxes(): Promise<readonly string[]> {
    const entries = await readdir(onDisk("/var/lib/cni/multus"), { withFileTypes: true });
    return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
  }

  /** What Multus did to a pod, in order. */
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

/** What the API server answered. */
export class Admissions<T> {
  readonly admitted: T[] = [];
  readonly refused: string[] = [];

  /** Asks the API server over and over what would become of an object, for as long as something else takes. */
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
