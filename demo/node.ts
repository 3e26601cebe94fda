import { type ChildProcess, spawn } from "node:child_process";
import { chmod, copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { PLUGIN_TYPE } from "../cni/stanza";
import type { ApiStub } from "../test/support/api-server";
import { TOKEN } from "./scene";

/** The cluster's primary CNI plugin. */
const PRIMARY = "demo-veth";

/** A node's directories below one folder, and its installer. */
export class DemoNode {
  readonly netDir: string;
  readonly binDir: string;
  private readonly accountDir: string;
  private installer: ChildProcess | undefined;
  /** The installer's log. */
  log = "";

  constructor(
    readonly directory: string,
    private readonly executable: string,
    /** The directory that the installer shares with the plugin. */
    private readonly runDir: string,
  ) {
    this.netDir = join(directory, "etc/cni/net.d");
    this.binDir = join(directory, "opt/cni/bin");
    this.accountDir = `${directory}-serviceaccount`;
  }

  /** Creates the directories with the files of the cluster's primary CNI plugin. */
  async create(primaryPlugin: string, ipv6: boolean): Promise<void> {
    await mkdir(this.netDir, { recursive: true });
    await mkdir(this.binDir, { recursive: true });
    const plugin = { type: PRIMARY, prefix4: "10.98.0", ...(ipv6 ? { prefix6: "fd98" } : {}) };
    const config = { cniVersion: "1.0.0", name: "cluster", plugins: [plugin] };
    await writeFile(join(this.netDir, "10-primary.conflist"), `${JSON.stringify(config, null, 4)}\n`);
    const installed = join(this.binDir, PRIMARY);
    await copyFile(primaryPlugin, installed);
    await chmod(installed, 0o755);
  }

  /** Starts the installer and waits until the chain contains our plugin. */
  async install(api: ApiStub, stanza: string): Promise<void> {
    await mkdir(this.accountDir, { recursive: true });
    await writeFile(join(this.accountDir, "token"), TOKEN);
    await writeFile(join(this.accountDir, "ca.crt"), api.ca);
    await writeFile(join(this.accountDir, "namespace"), "linkerd-cni");
    this.installer = spawn(this.executable, ["install"], {
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        CONTAINER_MOUNT_PREFIX: "",
        CONTAINER_CNI_BIN_DIR: dirname(this.executable),
        DEST_CNI_NET_DIR: this.netDir,
        DEST_CNI_BIN_DIR: this.binDir,
        CNI_NETWORK_CONFIG: stanza,
        KUBERNETES_SERVICE_HOST: "127.0.0.1",
        KUBERNETES_SERVICE_PORT: String(api.port),
        SERVICE_ACCOUNT_DIR: this.accountDir,
        PLUGIN_LOG: join(this.runDir, "plugin.log"),
        // Without a DaemonSet, a stop is an uninstall.
        UNINSTALL_ON_STOP: "always",
        HEALTH_PORT: "0",
      },
    });
    for (const stream of [this.installer.stdout, this.installer.stderr]) {
      stream?.on("data", (chunk: Buffer) => {
        this.log += chunk.toString();
      });
    }
    await this.until("the installer to chain the plugin", () => this.chained());
  }

  /** Stops the installer, which removes what it installed. */
  async uninstall(): Promise<void> {
    this.installer?.kill("SIGTERM");
    await this.until("the installer to stop", async () => this.installer?.exitCode !== null);
    if (this.installer?.exitCode !== 0) throw new Error(`the installer failed:\n${this.log}`);
  }

  private async chained(): Promise<boolean> {
    if (this.installer?.exitCode !== null) throw new Error(`the installer ended:\n${this.log}`);
    const files = (await readdir(this.netDir)).filter((name) => name.endsWith(".conflist"));
    const texts = await Promise.all(files.map((name) => readFile(join(this.netDir, name), "utf8")));
    return texts.some((text) => text.includes(`"${PLUGIN_TYPE}"`));
  }

  private async until(what: string, condition: () => Promise<boolean>): Promise<void> {
    for (const end = performance.now() + 20_000; performance.now() < end; await sleep(10)) {
      if (await condition()) return;
    }
    throw new Error(`waited 20 s for ${what}:\n${this.log}`);
  }
}
