/** An API server for tests in a separate process, which answers while this one starts many plugins. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { setPriority } from "node:os";
import { join } from "node:path";
import { bundle } from "../../build/bundle";
import { root } from "../../build/paths";

/** The installer's pod, by which it sees whether it can ask. */
const OWN_POD = "/pods/linkerd-cni";

interface Seen {
  readonly requests: readonly string[];
  readonly handshakes: number;
}

export class ApiProcess {
  private constructor(
    private readonly child: ChildProcess,
    /** Path of a kubeconfig for it. */
    readonly kubeconfig: string,
    readonly port: number,
    /** PEM. */
    readonly ca: string,
    /** The directory of its socket for look-ups. */
    readonly runDir: string,
  ) {}

  /**
   * @param directory directory for its program and the kubeconfig
   * @param options.beside a process in whose network namespace it listens. @default this one
   * @param options.runtime container runtime of every node, as `containerd://2.2.9`
   */
  static async open(directory: string, options: { beside?: number; runtime?: string } = {}): Promise<ApiProcess> {
    const { beside, runtime = "" } = options;
    const script = join(directory, "api-process.js");
    await bundle(join(root, "test", "support", "api-process.main.ts"), script);
    const enter = { execPath: "nsenter", execArgv: [`--net=/proc/${beside}/ns/net`, process.execPath] };
    const child = fork(script, [runtime], beside === undefined ? { execArgv: [] } : enter);
    const [message] = (await once(child, "message")) as [
      { kubeconfig: string; port: number; ca: string; runDir: string },
    ];
    const kubeconfig = join(directory, "api-process.kubeconfig");
    await writeFile(kubeconfig, message.kubeconfig);
    return new ApiProcess(child, kubeconfig, message.port, message.ca, message.runDir);
  }

  /** Keeps the processes that are started here off its processor, as if it were another machine's. */
  prefer(): void {
    try {
      setPriority(this.child.pid as number, -10);
    } catch {
      // Not for an ordinary user.
    }
  }

  /** Sets the delay of answers; counts what it saw since it was last called, but for what the installer asks for itself. */
  async delay(delayMs: number): Promise<{ readonly requests: number; readonly handshakes: number }> {
    const { requests, handshakes } = await this.seen(delayMs);
    return { requests: requests.filter((path) => !path.split("?")[0]?.endsWith(OWN_POD)).length, handshakes };
  }

  /** Paths that were asked for since the last call. @param delayMs of answers from now on */
  async requests(delayMs = 0): Promise<readonly string[]> {
    return (await this.seen(delayMs)).requests;
  }

  /** Gives every node another container runtime. @param runtime as `containerd://2.2.9` */
  async replaceRuntime(runtime: string): Promise<void> {
    await this.seen(0, runtime);
  }

  /** Its address, and the CA of its certificate. */
  async server(): Promise<{ readonly server: URL; readonly ca: string }> {
    const { clusters } = JSON.parse(await readFile(this.kubeconfig, "utf8"));
    const { server, "certificate-authority-data": ca } = clusters[0].cluster as Record<string, string>;
    return { server: new URL(server ?? ""), ca: Buffer.from(ca ?? "", "base64").toString() };
  }

  private async seen(delayMs: number, runtime?: string): Promise<Seen> {
    this.child.send({ delayMs, ...(runtime === undefined ? {} : { runtime }) });
    const [seen] = (await once(this.child, "message")) as [Seen];
    return seen;
  }

  close(): void {
    this.child.disconnect();
  }
}
