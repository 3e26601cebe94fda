import { until } from "../support/until";
import { startDaemon } from "./cluster";
import type { Machine } from "./machine";
import { runtime, setNriValidator } from "./runtimes";
import type { TestCluster } from "./suite";

const NAME = "linkerd-cni-nri";
const DAEMON_SET = ["--namespace=linkerd-cni", `daemonset/${NAME}`];
const PODS = ["--namespace=linkerd-cni", `--selector=k8s-app=${NAME}`];
export const ADMIN_PORT = 9992;

interface PluginPod {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
  readonly status: {
    readonly podIP?: string;
    readonly containerStatuses?: readonly { readonly ready: boolean; readonly restartCount: number }[];
  };
}

/** The NRI plugin, as the chart runs it in a cluster. */
export class NriPlugin {
  constructor(private readonly cluster: TestCluster) {}

  /** Waits until the DaemonSet's pod is the only one, and ready. */
  async rolledOut(): Promise<void> {
    await this.cluster.kubectl.run("rollout", "status", ...DAEMON_SET, "--timeout=180s");
    await until("the old plugin's end", async () => (await this.pods()).length === 1);
    await this.ready();
  }

  /** Waits until it is connected, and has looked at every pod. */
  async ready(): Promise<void> {
    await until("the NRI plugin to be ready", async () => {
      const pods = await this.pods();
      return pods.some(({ status }) => status.containerStatuses?.some(({ ready }) => ready) === true);
    });
  }

  /** Address of its pod. */
  async address(): Promise<string> {
    return (await this.pods())[0]?.status.podIP ?? "";
  }

  /** How often its container was started again, mostly because probes failed. */
  async restarts(): Promise<number> {
    const statuses = (await this.pods()).flatMap(({ status }) => status.containerStatuses ?? []);
    return statuses.reduce((sum, { restartCount }) => sum + restartCount, 0);
  }

  restart(): Promise<string> {
    return this.cluster.kubectl.run("rollout", "restart", ...DAEMON_SET);
  }

  /** Takes the plugin from the node, as long as {@link bringBack} is not called. */
  async takeAway(): Promise<void> {
    await this.selectNodes({ nowhere: "true" });
    await this.cluster.kubectl.run("wait", "pod", ...PODS, "--for=delete", "--timeout=180s");
  }

  async bringBack(): Promise<void> {
    await this.selectNodes({ nowhere: null });
    await this.rolledOut();
  }

  /** Sends the process a signal: STOP keeps it from answering. */
  async signal(signal: "KILL" | "STOP" | "CONT"): Promise<void> {
    await this.cluster.machine.run(["pkill", `-${signal}`, "-f", "^/opt/cni/bin/linkerd-cni nri"]);
  }

  log(): Promise<string> {
    return this.cluster.kubectl.run("logs", ...DAEMON_SET);
  }

  /** The logs of all its pods, of which there are two during a rollout. */
  logs(): Promise<string> {
    return this.cluster.kubectl.run("logs", ...PODS, "--tail=-1");
  }

  /** Value of a metric, such as `mended_pods_total`, or `pods_total{event="run",outcome="redirected"}`. */
  async metric(name: string): Promise<number> {
    const [pod] = await this.pods();
    const path = `/api/v1/namespaces/linkerd-cni/pods/${pod?.metadata.name}:${ADMIN_PORT}/proxy/metrics`;
    const lines = (await this.cluster.kubectl.run("get", "--raw", path)).split("\n");
    const line = lines.find((one) => one.startsWith(`linkerd_cni_nri_${name} `));
    return Number(line?.split(" ").at(-1) ?? 0);
  }

  private async pods(): Promise<readonly PluginPod[]> {
    return (await this.cluster.kubectl.json<{ items: PluginPod[] }>("get", "pods", ...PODS)).items;
  }

  private async selectNodes(nodeSelector: Readonly<Record<string, string | null>>): Promise<void> {
    const patch = JSON.stringify({ spec: { template: { spec: { nodeSelector } } } });
    await this.cluster.kubectl.run("patch", ...DAEMON_SET, `--patch=${patch}`);
  }
}

/** Ends the container runtime, and starts it again. @param validator whether it refuses containers that lack a plugin */
export async function restartRuntime(machine: Machine, { validator = false } = {}): Promise<void> {
  await machine.endDaemon(runtime().name);
  await setNriValidator(validator);
  await startDaemon(machine, runtime());
}

/** Runs a command in the network namespace of a pod. @returns its standard output */
export async function inPod(machine: Machine, name: string, ...command: string[]): Promise<string> {
  const filter = `labels."io.cri-containerd.kind"==sandbox,labels."io.kubernetes.pod.name"==${name}`;
  const id = await machine.run(["ctr", "--namespace=k8s.io", "containers", "ls", "--quiet", filter]);
  return inSandbox(machine, id.trim(), ...command);
}

/** The same of a pod's sandbox, by its id. */
export async function inSandbox(machine: Machine, id: string, ...command: string[]): Promise<string> {
  const tasks = (await machine.run(["ctr", "--namespace=k8s.io", "tasks", "ls"])).split("\n");
  const [, pid = ""] = tasks.find((line) => line.startsWith(id))?.split(/\s+/) ?? [];
  return machine.run(["nsenter", "--target", pid, "--net", ...command]);
}
