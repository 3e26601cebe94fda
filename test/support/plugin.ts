/** The plugin's executable, built once for a test file, and calls of it. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hostArchitecture } from "../../build/architecture";
import { buildPlugin } from "../../build/programs";
import { environment, runDir } from "../../plugin/protocol-cases.testing";
import { Node, type Ran } from "./netns";

interface Called extends Ran {
  /** Standard output, decoded; undefined if it is empty. */
  readonly document: unknown;
}

interface CallOptions {
  readonly cwd?: string;
  /** The network namespace that the plugin runs in. @default the machine's */
  readonly from?: string;
}

/** A node with the plugin on it, and an installer, or a stub of one, that it asks. */
export class PluginNode {
  private constructor(
    readonly node: Node,
    readonly directory: string,
    readonly executable: string,
    readonly runDir: string,
    private readonly emulator: readonly string[],
  ) {}

  /** @param api with the directory of a socket for look-ups, and a kubeconfig for linkerd's plugin @param emulator program that runs an executable of another architecture, with its arguments */
  static async open(
    api: { readonly runDir: string; kubeconfig?(): string },
    architecture = hostArchitecture(),
    emulator: readonly string[] = [],
  ): Promise<PluginNode> {
    const directory = await mkdtemp(join(tmpdir(), "plugin-"));
    const executable = join(directory, "linkerd-cni");
    await buildPlugin(executable, architecture);
    const made = new PluginNode(await Node.open(), directory, executable, api.runDir, emulator);
    if (api.kubeconfig !== undefined) await writeFile(made.kubeconfig, api.kubeconfig());
    return made;
  }

  get kubeconfig(): string {
    return join(this.directory, "kubeconfig");
  }

  /** Calls the executable; the configuration's directory of the socket is replaced by this node's. */
  async call(
    env: Readonly<Record<string, string>>,
    stdin: unknown,
    { cwd = "/", from }: CallOptions = {},
  ): Promise<Called> {
    const text = typeof stdin === "string" ? stdin : JSON.stringify(stdin);
    const input = this.input(text);
    const enter = from === undefined ? [] : ["nsenter", `--net=${from}`];
    const [program = "", ...args] = [...enter, ...this.emulator, this.executable];
    const ran = await this.node.run(program, args, { input, env, cwd });
    return { ...ran, document: ran.stdout === "" ? undefined : JSON.parse(ran.stdout) };
  }

  /** A call's configuration with this node's directory of the socket. */
  input(text: string): string {
    return text.replaceAll(runDir, this.runDir);
  }

  /** The environment of a call about a pod's namespace. */
  environment(netns: string, changes: Readonly<Record<string, string>> = {}): Record<string, string> {
    return { ...environment, CNI_NETNS: netns, ...changes };
  }

  async close(): Promise<void> {
    this.node.close();
    await rm(this.directory, { recursive: true });
  }
}
