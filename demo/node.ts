import { type ChildProcess, spawn } from "node:child_process";
import { chmod, copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { PLUGIN_TYPE } from "../cni/stanza";
import type { ApiServer } from "./api-server";

/** A node's directories below one folder, and its installer. */
export class DemoNode {
  readonly netDir: string;
  readonly binDir: string;
  private readonly accountDir: string;
  private installer: ChildProcess | undefined;
  /** The primary CNI's plugin is not in the node's directory. */
  private isElsewhere = false;
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
  async create(primary: { readonly config: object; readonly executable?: string }): Promise<void> {
    await mkdir(this.netDir, { recursive: true });
    await mkdir(this.binDir, { recursive: true });
    await writeFile(join(this.netDir, "10-primary.conflist"), `${JSON.stringify(primary.config, null, 4)}\n`);
    this.isElsewhere = primary.executable === undefined;
    if (primary.executable === undefined) return;
    const installed = join(this.binDir, "demo-veth");
    await copyFile(primary.executable, installed);
    await chmod(installed, 0o755);
  }

  /** Starts the installer and waits until the chain contains our plugin. */
  async install(api: ApiServer, stanza: string): Promise<void> {
    await mkdir(this.accountDir, { recursive: true });
    await writeFile(join(this.accountDir, "token"), api.token);
    await writeFile(join(this.accountDir, "ca.crt"), api.ca);
    await writeFile(join(this.accountDir, "namespace"), "linkerd-cni");
    this.installer = spawn(this.executable, ["install"], {
      stdio: ["ignore", "pipe", "pipe"],
      env: {
        CONTAINER_MOUNT_PREFIX: "",
        CONTAINER_CNI_BIN_DIR: dirname(this.executable),
        DEST_CNI_NET_DIR: this.netDir,
        DEST_CNI_BIN_DIR: this.binDir,
        MULTIPLE_CNI_BIN_DIRS: String(this.isElsewhere),
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

/** The configuration that the cluster's own CNI plugin has put on the node before ours comes. */
interface Primary {
  readonly config: object;
  /** Script to install as plugin `demo-veth`; absent if the reference plugins are used. */
  readonly executable?: string;
}

/** Our own stand-in: a veth pair a pod. */
export function demoPrimary(executable: string, ipv6: boolean): Primary {
  return {
    config: {
      cniVersion: "1.0.0",
      name: "cluster",
      plugins: [{ type: "demo-veth", prefix4: "10.98.0", ...(ipv6 ? { prefix6: "fd98" } : {}) }],
    },
    executable,
  };
}

/** The CNI project's bridge and host-local. `state` is a directory for the addresses handed out. */
export function referencePrimary(state: string, ipv6: boolean): Primary {
  const ranges = [[{ subnet: "10.98.0.0/24" }], ...(ipv6 ? [[{ subnet: "fd98::/64" }]] : [])];
  const routes = [{ dst: "0.0.0.0/0" }, ...(ipv6 ? [{ dst: "::/0" }] : [])];
  return {
    config: {
      cniVersion: "1.0.0",
      name: "cluster",
      plugins: [
        {
          type: "bridge",
          bridge: "cni0",
          isGateway: true,
          ipam: { type: "host-local", dataDir: state, ranges, routes },
        },
      ],
    },
  };
}
