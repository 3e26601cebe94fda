import { spawnSync } from "node:child_process";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { POD_ANNOTATIONS } from "../../cni/stanza";
import { ApiProcess } from "../support/api-process";
import { Node } from "../support/netns";
import { NodeInstaller } from "../support/node-installer";
import { type Start, Starter } from "./starter";

/** One way of calling, measured from the start of the process to its end. */
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

/** The largest call that a cluster could make, for a meshed pod. */
export interface LargeCall {
  readonly what: string;
  /** Name of the pod. @default "meshed" */
  readonly pod?: string;
  /** Replaces members of the input. */
  readonly config?: object;
  /** How deep the arrays of one more member are nested. @default 0 */
  readonly depth?: number;
  /** The verb; CHECK follows an ADD. @default "ADD" */
  readonly verb?: "ADD" | "CHECK";
  /** Commands that a program of the pod gives to nft before the call. */
  readonly nft?: string;
}

/** How one call ended. */
interface Outcome {
  readonly tookMs: number;
  /** `redirected`, `as it was set` of a CHECK, or the code of the CNI error. */
  readonly outcome: string;
}

/** Annotations that linkerd's injector writes. */
export const injected = {
  "linkerd.io/proxy-version": "edge-26.7.1",
  "linkerd.io/created-by": "linkerd/proxy-injector",
};

/** The stanza `linkerd` of the chart's defaults. */
export const stanza = {
  "incoming-proxy-port": 4143,
  "outgoing-proxy-port": 4140,
  "proxy-uid": 2102,
  "ports-to-redirect": [],
  "inbound-ports-to-ignore": ["4191", "4190"],
};

/** A node to measure on: namespaces for pods, an installer, and an API server in a process of its own. */
export class Bench {
  private constructor(
    private readonly node: Node,
    /** Starts programs with and without the installer's socket. */
    private readonly starters: { readonly beside: Starter; readonly alone: Starter },
    private readonly installer: NodeInstaller,
    private readonly api: ApiProcess,
    private readonly directory: string,
  ) {}

  static async open(directory: string): Promise<Bench> {
    const api = await ApiProcess.open(directory);
    const node = await Node.open();
    const installer = await NodeInstaller.start(api);
    const starters = { beside: new Starter(node, installer.runDir), alone: new Starter(node) };
    return new Bench(node, starters, installer, api, directory);
  }

  async close(): Promise<void> {
    this.api.close();
    for (const starter of Object.values(this.starters)) starter.close();
    this.node.close();
    await this.installer.close();
  }

  /** Sets the delay of answers; gives the number of requests and TLS handshakes since it was last called. */
  delay(delayMs: number): Promise<{ readonly requests: number; readonly handshakes: number }> {
    return this.api.delay(delayMs);
  }

  /** The installer's memory in MiB. */
  installerMiB(): number {
    return this.installer.residentMiB();
  }

  /** Milliseconds of each of the calls of one round, all started at once. */
  async round({ name, executable, mode }: Contestant, { pod, parallel }: Scenario): Promise<number[]> {
    const pods = await Promise.all(Array.from({ length: parallel }, () => this.node.pod()));
    const input = this.input(pod, mode);
    const starter = name === "ours" ? this.starters.beside : this.starters.alone;
    const ended = await starter.run(
      pods.map((netns): Start => ({ program: executable, env: environment(netns, pod), input })),
    );
    for (const { status, stdout, stderr } of ended) {
      if (status !== 0) throw new Error(`${executable} failed: ${stdout}${stderr}`);
    }
    for (const netns of pods) this.node.release(netns);
    return ended.map(({ tookMs }) => tookMs);
  }

  /** Bytes of the executable. */
  async size({ executable }: Contestant): Promise<number> {
    return (await stat(executable)).size;
  }

  /** Milliseconds from the start of a process that answers VERSION to its end. */
  async start({ executable }: Contestant): Promise<number> {
    const call = { program: executable, env: { CNI_COMMAND: "VERSION" }, input: "" };
    const { status, tookMs } = await this.starters.alone.one(call);
    if (status !== 0) throw new Error(`${executable} failed at VERSION`);
    return tookMs;
  }

  /** Peak resident memory of an ADD in MiB; undefined without GNU time. */
  peakMemory({ executable, mode }: Contestant, pod: Scenario["pod"]): Promise<number | undefined> {
    return this.node.pod().then((netns) => this.peakOf(executable, this.input(pod, mode), pod, netns));
  }

  /** The same of a large call. */
  async largePeak(contestant: Contestant, call: LargeCall): Promise<number | undefined> {
    const { executable, mode } = contestant;
    const netns = await this.prepared(contestant, call);
    return this.peakOf(executable, this.largeInput(call, mode), call.pod ?? "meshed", netns, call.verb);
  }

  /** Makes a large call once. @throws if it ends in anything but success or a CNI error */
  async large(contestant: Contestant, call: LargeCall): Promise<Outcome> {
    const { executable, mode } = contestant;
    const netns = await this.prepared(contestant, call);
    const input = this.largeInput(call, mode);
    const env = environment(netns, call.pod ?? "meshed", call.verb);
    const { tookMs, status, stdout, stderr } = await this.starters.alone.one({ program: executable, env, input });
    this.node.release(netns);
    if (status === 0 && call.verb === "CHECK") return { tookMs, outcome: "as it was set" };
    if (status === 0 && stderr.includes("redirected")) return { tookMs, outcome: "redirected" };
    if (status !== 1) throw new Error(`${call.what}: ended by ${status}: ${stdout.slice(0, 1000)}${stderr}`);
    const { code } = JSON.parse(stdout) as { code: number };
    return { tookMs, outcome: `CNI error ${code}` };
  }

  /** The state of the namespace for a large call. */
  private async prepared({ executable, mode }: Contestant, { verb, nft }: LargeCall): Promise<string> {
    const netns = await this.node.pod();
    if (verb === "CHECK") {
      await this.node.run(executable, [], { input: this.input("meshed", mode), env: environment(netns, "meshed") });
    }
    if (nft !== undefined) this.node.within(netns, "nft", ["-f", "-"], nft);
    return netns;
  }

  /**
   * Peak resident memory in MiB, of the process or of a larger child. The kernel includes the starting process's memory
   * until exec: GNU time forks, and is smaller than any plugin.
   */
  private async peakOf(
    executable: string,
    input: string,
    pod: string,
    netns: string,
    verb?: LargeCall["verb"],
  ): Promise<number | undefined> {
    if (!/GNU Time/i.test(spawnSync("time", ["--version"], { encoding: "utf8" }).stdout ?? "")) return undefined;
    const log = join(this.directory, "time");
    const args = ["-f", "%M", "-o", log, executable];
    const { status } = await this.node.run("time", args, { input, env: environment(netns, pod, verb) });
    this.node.release(netns);
    // Status 1 is a CNI error, before which the line is one about the status.
    if (status !== 0 && status !== 1) throw new Error(`time ${executable} ended by ${status}`);
    const kibibytes = /^(\d+)$/m.exec(await readFile(log, "utf8"))?.[1];
    return kibibytes === undefined ? undefined : Number(kibibytes) / 1024;
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

  /** The input that containerd sends: the peer does not request annotations, and ignores them. */
  private input(pod: Scenario["pod"], mode: string, config: object = {}): string {
    return JSON.stringify({
      cniVersion: "1.0.0",
      name: "pods",
      type: "linkerd-cni",
      log_level: "info",
      kubernetes: { kubeconfig: this.api.kubeconfig },
      linkerd: { ...stanza, "iptables-mode": mode },
      runtimeConfig: { [POD_ANNOTATIONS]: pod === "meshed" ? injected : {} },
      prevResult: {
        cniVersion: "1.0.0",
        interfaces: [{ name: "eth0" }],
        ips: [{ address: "10.0.0.2/24", interface: 0 }],
      },
      ...config,
    });
  }

  private largeInput({ config, depth = 0 }: LargeCall, mode: string): string {
    const text = this.input("meshed", mode, config);
    return depth === 0 ? text : `${text.slice(0, -1)},"nested":${"[".repeat(depth)}${"]".repeat(depth)}}`;
  }
}

function environment(netns: string, pod: string, verb = "ADD"): Record<string, string> {
  return {
    CNI_COMMAND: verb,
    CNI_CONTAINERID: "bench",
    CNI_NETNS: netns,
    CNI_IFNAME: "eth0",
    CNI_PATH: "/opt/cni/bin",
    CNI_ARGS: `IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=${pod}`,
    PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
  };
}
