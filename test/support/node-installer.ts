/** An installer of the built executable that answers look-ups of plugins on the same machine. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { LOOKUP_SOCKET_NAME } from "../../cni/contract";
import { type Installer, TestNode } from "../kernel/installer-node";
import { connectUnix } from "./node/net";
import { mebibytes } from "./processes";

const CHAIN = JSON.stringify({ cniVersion: "1.0.0", name: "net", plugins: [{ type: "bridge" }] });

/** Address of an API server, and the authority of its certificate. */
interface Server {
  readonly port: number;
  /** PEM. */
  readonly ca: string;
}

export class NodeInstaller {
  private readonly node = new TestNode({ "10-net.conflist": CHAIN });
  private installer: Installer;

  private constructor(private readonly server: Server) {
    writeFileSync(join(this.node.accountDir, "ca.crt"), server.ca);
    this.installer = this.another();
  }

  /** Resolves once it answers. */
  static async start(server: Server): Promise<NodeInstaller> {
    const made = new NodeInstaller(server);
    await made.listens();
    return made;
  }

  /** The directory that the plugin sees as /run/linkerd-cni. */
  get runDir(): string {
    return this.node.root;
  }

  /** The node's CNI configuration. */
  get netDir(): string {
    return this.node.netDir;
  }

  get socket(): string {
    return join(this.runDir, LOOKUP_SOCKET_NAME);
  }

  get process(): Installer {
    return this.installer;
  }

  /** Another installer for the same node, beside the first. */
  another(changes: Readonly<Record<string, string>> = {}): Installer {
    return this.node.start({
      KUBERNETES_SERVICE_PORT: `${this.server.port}`,
      POD_NAMESPACE: "linkerd-cni",
      POD_NAME: "linkerd-cni",
      UNINSTALL_ON_STOP: "never",
      LOG_LEVEL: "debug",
      ...changes,
    });
  }

  /** Starts it again after it has ended. */
  async restart(changes: Readonly<Record<string, string>> = {}): Promise<void> {
    this.installer = this.another(changes);
    await this.listens();
  }

  /** Resolves once something listens at the socket. */
  async listens(): Promise<void> {
    for (;;) {
      try {
        (await connectUnix(this.socket)).close();
        return;
      } catch {
        if (this.installer.hasEnded) throw new Error(`the installer has ended:\n${this.installer.log}`);
        await sleep(20);
      }
    }
  }

  residentMiB(): number {
    return mebibytes(this.installer.pid, "VmRSS");
  }

  async close(): Promise<void> {
    await this.installer.stop("SIGKILL");
    this.node.delete();
  }
}
