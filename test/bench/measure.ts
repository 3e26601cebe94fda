import { spawnSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { hostRuntime } from "../../build/runtime";
import { POD_ANNOTATIONS } from "../../cni/stanza";
import { ApiProcess } from "../support/api-process";
import { Node } from "../support/netns";

/** One way of calling: what is measured is the time from the start of the process to its end. */
export interface Scenario {
  readonly pod: "meshed" | "unmeshed";
  readonly delayMs: number;
  readonly parallel: number;
  readonly rounds: number;
}

export interface Contestant {
  readonly name: "ours" | "peer";
  readonly executable: string;
  /** How each programs its rules by default. */
  readonly mode: string;
}

const injected = { "linkerd.io/proxy-version": "edge-26.7.1", "linkerd.io/created-by": "linkerd/proxy-injector" };

/** A node to measure on: namespaces for pods, and an API server in a process of its own. */
export class Bench {
  private constructor(
    private readonly node: Node,
    private readonly api: ApiProcess,
    private readonly directory: string,
  ) {}

  static async open(directory: string): Promise<Bench> {
    const api = await ApiProcess.open(directory);
    return new Bench(await Node.open(), api, directory);
  }

  close(): void {
    this.api.close();
    this.node.close();
  }

  /** Sets the delay of answers; gives the number of requests since it was last called. */
  delay(delayMs: number): Promise<number> {
    return this.api.delay(delayMs);
  }

  /** Milliseconds of each of the calls of one round, all started at once. */
  async round({ executable, mode }: Contestant, { pod, parallel }: Scenario): Promise<number[]> {
    const pods = await Promise.all(Array.from({ length: parallel }, () => this.node.pod()));
    const input = this.input(pod, mode);
    const times = await Promise.all(
      pods.map(async (netns) => {
        const begin = performance.now();
        const { status, stdout, stderr } = await this.node.run(executable, [], { input, env: environment(netns, pod) });
        const took = performance.now() - begin;
        if (status !== 0) throw new Error(`${executable} failed: ${stdout}${stderr}`);
        return took;
      }),
    );
    for (const netns of pods) this.node.release(netns);
    return times;
  }

  /** Peak resident memory in MiB, of the process and of those it starts, each by itself. */
  async peakMemory({ executable, mode }: Contestant, pod: Scenario["pod"]): Promise<number> {
    const netns = await this.node.pod();
    const script = `const { resourceUsage, exitCode } = Bun.spawnSync([${JSON.stringify(executable)}], { stdin: Buffer.from(process.env.INPUT), env: JSON.parse(process.env.ENV) }); if (exitCode !== 0) process.exit(1); console.log(resourceUsage.maxRSS)`;
    const env = { INPUT: this.input(pod, mode), ENV: JSON.stringify(environment(netns, pod)) };
    const { status, stdout, stderr } = await this.node.run(hostRuntime(), ["-e", script], { env });
    if (status !== 0) throw new Error(`${executable} failed: ${stdout}${stderr}`);
    this.node.release(netns);
    return Number(stdout) / 1024 / 1024;
  }

  /** Programs started by one call, itself not counted; undefined without strace. */
  async programs({ executable, mode }: Contestant, pod: Scenario["pod"]): Promise<number | undefined> {
    if (spawnSync("strace", ["-V"]).status !== 0) return undefined;
    const netns = await this.node.pod();
    const log = join(this.directory, "strace");
    const args = ["-f", "-e", "trace=execve", "-o", log, executable];
    const env = { ...environment(netns, pod), PATH: process.env["PATH"] ?? "" };
    const { status, stderr } = await this.node.run("strace", args, { input: this.input(pod, mode), env });
    if (status !== 0) throw new Error(`strace ${executable} failed: ${stderr}`);
    this.node.release(netns);
    const started = (await readFile(log, "utf8"))
      .split("\n")
      .filter((line) => / execve\(.* = 0$|execve resumed.* = 0$/.test(line));
    return started.length - 1;
  }

  /** What containerd sends: the peer does not ask for annotations and overlooks them. */
  private input(pod: Scenario["pod"], mode: string): string {
    return JSON.stringify({
      cniVersion: "1.0.0",
      name: "pods",
      type: "linkerd-cni",
      log_level: "info",
      kubernetes: { kubeconfig: this.api.kubeconfig },
      linkerd: {
        "incoming-proxy-port": 4143,
        "outgoing-proxy-port": 4140,
        "proxy-uid": 2102,
        "ports-to-redirect": [],
        "inbound-ports-to-ignore": ["4191", "4190"],
        "iptables-mode": mode,
      },
      runtimeConfig: { [POD_ANNOTATIONS]: pod === "meshed" ? injected : {} },
      prevResult: {
        cniVersion: "1.0.0",
        interfaces: [{ name: "eth0" }],
        ips: [{ address: "10.0.0.2/24", interface: 0 }],
      },
    });
  }
}

function environment(netns: string, pod: string): Record<string, string> {
  return {
    CNI_COMMAND: "ADD",
    CNI_CONTAINERID: "bench",
    CNI_NETNS: netns,
    CNI_IFNAME: "eth0",
    CNI_PATH: "/opt/cni/bin",
    CNI_ARGS: `IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=${pod}`,
    PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
  };
}
