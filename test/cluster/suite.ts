import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { outputs, root } from "../../build/paths";
import { Progress } from "../../build/progress";
import { isPlugin, PLUGIN_TYPE } from "../../cni/stanza";
import type { CallRecord } from "../../host/call-log";
import { suite, which } from "../support/requirements";
import { snapshot } from "../support/snapshot";
import { until } from "../support/until";
import { down, up } from "./cluster";
import { Machine } from "./machine";
import { onDisk, paths } from "./paths";
import { Kubectl } from "./pods";
import { missing } from "./requirements";
import { lacksCrio, type RuntimeName, runtime } from "./runtimes";

export const NET_DIR = "/etc/cni/net.d";
export const BIN_DIR = "/opt/cni/bin";
const CHART = "dist/charts/linkerd2-cni";
/** A container runtime's messages if it cannot make or end a pod's sandbox, or has no CNI configuration for it. */
const FAILURE = /(Run|Stop)PodSandbox|network for sandbox|cni/i;
/**
 * What it says of a container or sandbox that ended while its figures or state were read, with the cluster's cgroup or a
 * network namespace in it, whose names hold "cni".
 */
const ENDED = /msg="(collecting metrics|PodSandboxStatus for)/;

/** Shared by the tests of one file: their own cluster, and functions to work with it. */
export class TestCluster {
  machine!: Machine;
  kubectl!: Kubectl;

  async helm(...args: string[]): Promise<string> {
    return this.machine.run(["helm", ...args], { directory: root });
  }

  /** Installs the chart by the README's command, and waits until its pod is ready. */
  async install(...options: string[]): Promise<void> {
    await this.helm("install", "linkerd-cni", "-n", "linkerd-cni", "--create-namespace", CHART, ...options);
    await this.rolledOut();
  }

  async upgrade(...options: string[]): Promise<void> {
    await this.helm("upgrade", "linkerd-cni", "-n", "linkerd-cni", CHART, ...options);
    await this.rolledOut();
  }

  async rollback(revision: number): Promise<void> {
    await this.helm("rollback", "linkerd-cni", String(revision), "-n", "linkerd-cni");
    await this.rolledOut();
  }

  async uninstall(): Promise<void> {
    await this.helm("uninstall", "linkerd-cni", "-n", "linkerd-cni", "--wait", "--timeout=180s");
    await this.installerGone();
  }

  /** Waits until the installer's pod has ended: `helm uninstall` does not wait for it. */
  async installerGone(): Promise<void> {
    const selector = ["--namespace=linkerd-cni", "--selector=k8s-app=linkerd-cni"];
    await this.kubectl.run("wait", "pod", ...selector, "--for=delete", "--timeout=180s");
  }

  async rolledOut(): Promise<void> {
    const [where, what] = ["--namespace=linkerd-cni", "daemonset/linkerd-cni"];
    try {
      await this.kubectl.run("rollout", "status", where, what, "--timeout=180s");
    } catch (error) {
      const log = await this.kubectl.run("logs", where, what, "--tail=20").catch(String);
      throw new Error(`${(error as Error).message}\n${log}`, { cause: error });
    }
    // The new pod comes first, and the end of the old one is part of the update.
    await until("the old pods' end", async () => {
      type Pods = { items: object[] };
      type DaemonSet = { status: { desiredNumberScheduled: number } };
      const { items } = await this.kubectl.json<Pods>("get", "pods", "-n", "linkerd-cni", "-l", "k8s-app=linkerd-cni");
      const { status } = await this.kubectl.json<DaemonSet>("get", "daemonset", "linkerd-cni", "-n", "linkerd-cni");
      return items.length === status.desiredNumberScheduled;
    });
  }

  /** How often each container of the installer's pod has been started again. */
  async restarts(): Promise<number[]> {
    type Pods = { items: { status: { containerStatuses: { restartCount: number }[] } }[] };
    const { items } = await this.kubectl.json<Pods>("get", "pods", "-n", "linkerd-cni", "-l", "k8s-app=linkerd-cni");
    return items.flatMap(({ status }) => status.containerStatuses.map(({ restartCount }) => restartCount));
  }

  /** The node's CNI configuration: the owner's list, and the drop-ins that a runtime may append to it. */
  async configuration(): Promise<{ plugins: { type: string }[] }> {
    const read = async (...names: string[]) => JSON.parse(await readFile(join(onDisk(NET_DIR), ...names), "utf8"));
    const list = (await read("10-cluster.conflist")) as { name: string; plugins: { type: string }[] };
    const files = await readdir(join(onDisk(NET_DIR), list.name)).catch(() => []);
    const dropins = files.filter((name) => name.endsWith(".conf")).sort();
    const appended = await Promise.all(dropins.map((name) => read(list.name, name)));
    return { ...list, plugins: [...list.plugins, ...appended] };
  }

  /** Types of the plugins in the node's chain, in order; ours is `linkerd-cni` by either name. */
  async chain(): Promise<string[]> {
    return (await this.configuration()).plugins.map(({ type }) => (isPlugin(type) ? PLUGIN_TYPE : type));
  }

  /** Every byte of the node's CNI directories. */
  async directories(): Promise<Record<string, string>> {
    const [net, bin] = await Promise.all([NET_DIR, BIN_DIR].map((directory) => snapshot(onDisk(directory))));
    return { ...net, ...bin };
  }

  /** The plugin's executables on the node, each with its digest. */
  async executables(): Promise<string[]> {
    const found = Object.entries(await this.directories());
    return found.flatMap(([path, what]) => (path === "linkerd-cni" ? [what] : []));
  }

  /** Calls of the plugin to add pods, as it recorded them itself. @param of one pod, as `default/client`, or several */
  async additions(of: string | RegExp): Promise<CallRecord[]> {
    const log = await this.machine.run(["cat", "/run/linkerd-cni/plugin.log"]);
    const records = log
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as CallRecord);
    const wanted = (pod = "") => (typeof of === "string" ? pod === of : of.test(pod));
    return records.filter(({ verb, pod }) => verb === "ADD" && wanted(pod));
  }

  /**
   * Failures to start or to stop a pod, and to load the CNI configuration, as the container runtime logged them so far.
   * Nothing in their text tells whose fault they are: a chain that is broken fails in the names of others.
   */
  async failures(): Promise<string[]> {
    const log = await readFile(join(paths.logs, runtime().name), "utf8");
    const errors = log.split("\n").filter((line) => line.includes("level=error") && !ENDED.test(line));
    return errors.filter((line) => FAILURE.test(line));
  }
}

/** What a suite with a cluster needs and this machine lacks, in words. @param programs additional programs that it needs */
export function lacks(programs: readonly string[] = []): string | undefined {
  const problems = [...missing(), ...programs.filter((program) => which(program) === undefined)];
  if (!existsSync(outputs.image)) problems.push("the built image: npm run build");
  return problems.length === 0 ? undefined : problems.join("; ");
}

/** A suite with its own cluster, which is gone afterwards. @param programs additional programs that it needs */
export function clusterSuite(
  name: string,
  body: (cluster: TestCluster) => void,
  runtimeName: RuntimeName = "1",
  programs: readonly string[] = [],
): void {
  suite(name, (runtimeName === "crio" ? lacksCrio() : undefined) ?? lacks(programs), () => {
    const cluster = new TestCluster();
    // A cluster that was running before stays.
    let ours = false;
    beforeAll(async () => {
      if ((await Machine.find()) !== undefined) throw new Error("a cluster runs here: npm run cluster -- down");
      ours = true;
      cluster.machine = await up(new Progress(process.stdout), runtimeName);
      cluster.kubectl = new Kubectl(cluster.machine);
    }, 1_800_000);
    afterAll(async () => {
      if (ours) await down();
    });
    body(cluster);
  });
}
