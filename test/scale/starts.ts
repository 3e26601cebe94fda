/** Starts of pods: ADDs by a plugin's executable, on one of several nodes each, several at once. */
import type { ChildProcessWithoutNullStreams } from "node:child_process";
import { mkdirSync, renameSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { outputs } from "../../build/paths";
import { LOOKUP_SOCKET_NAME } from "../../cni/contract";
import { POD_ANNOTATIONS } from "../../cni/stanza";
import { Starter } from "../bench/starter";
import { Node } from "../support/netns";
import { each } from "./each";

const PATH = "/usr/sbin:/usr/bin:/sbin:/bin";
const ENDED = "linkerd-cni-rules-end";
const PLUGIN_LOG = "plugin.log";

/** A pod that starts. */
export interface Starting {
  readonly name: string;
  readonly annotations: Readonly<Record<string, string>>;
  /** The plugin's configuration on the pod's node. */
  readonly stanza: object;
  /** The node's directory of the call log and the look-up socket. */
  readonly runDir: string;
  /** A number that only this pod's rules have. */
  readonly mark: number;
}

/** One ADD. */
export interface Added {
  readonly tookMs: number;
  /** Absent if it succeeded. */
  readonly failure?: string;
}

/** One network namespace, made once: an ADD replaces the rules of the one before. */
class Place {
  private constructor(
    private readonly directory: string,
    private readonly netns: string,
    private readonly starter: Starter,
    private readonly shell: ChildProcessWithoutNullStreams,
    private readonly lines: AsyncIterator<string>,
  ) {}

  /** @param directory a new one, which the plugin sees as /run/linkerd-cni */
  static async open(node: Node, directory: string): Promise<Place> {
    mkdirSync(directory);
    for (const name of [LOOKUP_SOCKET_NAME, PLUGIN_LOG]) symlinkSync(`node/${name}`, join(directory, name));
    const netns = await node.pod();
    // One shell a namespace: entering it takes longer than listing its rules.
    const script = `while read -r _; do nft list ruleset; echo ${ENDED}; done`;
    const shell = node.start("nsenter", [`--net=${netns}`, "sh", "-c", script], { env: { PATH } });
    shell.stderr.resume();
    const lines = createInterface({ input: shell.stdout })[Symbol.asyncIterator]();
    return new Place(directory, netns, new Starter(node, directory), shell, lines);
  }

  async add({ name, annotations, stanza, runDir }: Starting): Promise<Added> {
    symlinkSync(runDir, join(this.directory, "next"));
    renameSync(join(this.directory, "next"), join(this.directory, "node"));
    const input = JSON.stringify({
      cniVersion: "1.0.0",
      name: "k",
      ...stanza,
      runtimeConfig: { [POD_ANNOTATIONS]: annotations },
      prevResult: {
        cniVersion: "1.0.0",
        interfaces: [{ name: "eth0" }],
        ips: [{ address: "10.0.0.2/24", interface: 0 }],
      },
    });
    const env = {
      CNI_COMMAND: "ADD",
      CNI_CONTAINERID: name,
      CNI_NETNS: this.netns,
      CNI_IFNAME: "eth0",
      CNI_PATH: "/opt/cni/bin",
      CNI_ARGS: `IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=${name}`,
      PATH,
    };
    const { status, stdout, stderr, tookMs } = await this.starter.one({ program: outputs.plugin, env, input });
    return { tookMs, ...(status === 0 ? {} : { failure: `ADD of ${name} ended by ${status}: ${stdout}${stderr}` }) };
  }

  /** The namespace's rules, as nft lists them. */
  async rules(): Promise<string> {
    this.shell.stdin.write("\n");
    let text = "";
    for (;;) {
      const { value, done } = await this.lines.next();
      if (done === true) throw new Error("the shell that lists rules ended");
      if (value === ENDED) return text;
      text += `${value}\n`;
    }
  }

  close(): void {
    this.starter.close();
    this.shell.stdin.end();
  }
}

/**
 * Starts pods, one after another in each of some network namespaces.
 * @param parallel how many are under way at once @param directory a new one
 * @returns each ADD; one that leaves other rules than the pod's has failed
 */
export async function startPods(
  pods: readonly Starting[],
  parallel: number,
  directory: string,
): Promise<readonly Added[]> {
  const node = await Node.open();
  mkdirSync(directory);
  const places: Place[] = [];
  const calls: Added[] = [];
  try {
    for (let at = 0; at < parallel; at++) places.push(await Place.open(node, join(directory, String(at))));
    const idle = [...places];
    await each(pods, parallel, async (pod) => {
      const place = idle.pop() as Place;
      const call = await place.add(pod);
      const isRuled = call.failure !== undefined || (await place.rules()).includes(`dport ${pod.mark} `);
      calls.push(isRuled ? call : { ...call, failure: `ADD of ${pod.name} left other rules than its own` });
      idle.push(place);
    });
  } finally {
    for (const place of places) place.close();
    node.close();
  }
  return calls;
}
