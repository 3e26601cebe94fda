import { type ChildProcess, execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, watch, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { outputs } from "../../build/paths";
import { isPlugin } from "../../cni/stanza";
import { PRIMARY_PLUGINS, writePrimaryPlugins } from "../../installer/primary-plugins.testing";
import { startProgram } from "../support/program";
import { until } from "../support/until";

/** Answers VERSION at once, so that a suite of many starts is not about the real plugin's size. */
export const SMALL_PLUGIN = `#!/bin/sh
echo '{"cniVersion":"1.0.0","supportedVersions":["1.0.0"]}'
`;

interface Plugin {
  readonly type?: string;
  readonly kubernetes?: { readonly kubeconfig?: string };
}

interface Configuration {
  readonly name?: string;
  readonly plugins?: readonly Plugin[];
}

/** One installer's process. */
export class Installer {
  log = "";
  private isOver = false;
  private readonly ended: Promise<number | string>;

  constructor(private readonly child: ChildProcess) {
    child.stdout?.on("data", (chunk: Buffer) => {
      this.log += chunk.toString();
    });
    child.stderr?.pipe(process.stderr);
    this.ended = new Promise((resolve) =>
      child.on("close", (code, signal) => {
        this.isOver = true;
        resolve(code ?? signal ?? "");
      }),
    );
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** Resolves when the log holds a text; rejects when the process ends, or takes too long, without. */
  async says(text: string): Promise<void> {
    const isSaid = () => this.log.includes(text);
    await until("the installer's word", () => isSaid() || this.isOver).catch(() => undefined);
    if (!isSaid()) throw new Error(`the installer does not say "${text}" but:\n${this.log}`);
  }

  /** Closes the log: later lines of the installer are lost. */
  deafen(): void {
    this.child.stdout?.destroy();
  }

  get hasEnded(): boolean {
    return this.child.exitCode !== null || this.child.signalCode !== null;
  }

  /** Sends a signal that does not end it. */
  signal(signal: "SIGSTOP" | "SIGCONT"): void {
    this.child.kill(signal);
  }

  /** Ends it by a signal; resolves to its exit code, or the signal that ended it. */
  stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number | string> {
    this.child.kill(signal);
    return this.ended;
  }

  end(): Promise<number | string> {
    return this.ended;
  }
}

/** A node's directories in a place of their own. */
export class TestNode {
  readonly root = mkdtempSync(join(tmpdir(), "linkerd-cni-node-"));
  readonly netDir = join(this.root, "net.d");
  readonly binDir = join(this.root, "bin");
  readonly accountDir = join(this.root, "account");
  readonly imageDir = join(this.root, "image");
  /** Directory in which libcni and Multus save attachments; it does not exist yet. */
  readonly cacheDir = join(this.root, "cache");

  constructor(configs: Readonly<Record<string, string>>, plugin: string | Uint8Array = SMALL_PLUGIN) {
    for (const directory of [this.netDir, this.binDir, this.accountDir, this.imageDir]) mkdirSync(directory);
    writePrimaryPlugins(this.binDir);
    writeFileSync(join(this.imageDir, "linkerd-cni"), plugin, { mode: 0o755 });
    writeFileSync(join(this.accountDir, "token"), "token");
    writeFileSync(join(this.accountDir, "ca.crt"), "CA");
    for (const [name, text] of Object.entries(configs)) this.write(name, text);
  }

  write(name: string, text: string): void {
    writeFileSync(join(this.netDir, name), text);
  }

  read(name: string): string {
    return readFileSync(join(this.netDir, name), "utf8");
  }

  /** Every file of the node with its content, and every directory, except the primary CNI's plugins. */
  content(): Readonly<Record<string, string>> {
    const entries = [this.netDir, this.binDir].flatMap((directory) =>
      readdirSync(directory, { recursive: true, withFileTypes: true }),
    );
    return Object.fromEntries(
      entries
        .filter(({ name }) => !PRIMARY_PLUGINS.includes(name))
        .map((entry) => {
          const path = join(entry.parentPath, entry.name);
          const name = path.slice(this.root.length + 1);
          return [name, entry.isDirectory() ? "a directory" : readFileSync(path, "latin1")];
        }),
    );
  }

  /** Configurations whose chain names something that is not there: on such a node no pod starts. */
  broken(): readonly string[] {
    return readdirSync(this.netDir)
      .filter((name) => /\.(conf|conflist|json)$/.test(name))
      .flatMap((name) => this.brokenIn(name));
  }

  /** Whether the file's chain, with its drop-ins, ends in our stanza, and has it once. */
  isChained(name: string): boolean {
    if (!existsSync(join(this.netDir, name))) return false;
    const types = this.types(name);
    return types.findIndex(isPlugin) === types.length - 1;
  }

  /** Types of the plugins that a runtime calls for a list, those of its drop-ins included. */
  types(name: string): readonly (string | undefined)[] {
    return this.plugins(name).map(({ type }) => type);
  }

  /** Reads the folders of drop-ins whenever something changes in the configuration directory, as container runtimes do. */
  readAsRuntime(): { close(): void } {
    return watch(this.netDir, () => {
      for (const entry of readdirSync(this.netDir, { withFileTypes: true })) {
        if (!entry.isDirectory()) continue;
        try {
          readdirSync(join(this.netDir, entry.name));
        } catch {
          // It has just been removed.
        }
      }
    });
  }

  /** Environment of an installer of this node. There is no API server unless the changes name one. */
  environment(changes: Readonly<Record<string, string>> = {}): Record<string, string> {
    return {
      CONTAINER_MOUNT_PREFIX: "",
      DEST_CNI_NET_DIR: this.netDir,
      DEST_CNI_BIN_DIR: this.binDir,
      CONTAINER_CNI_BIN_DIR: this.imageDir,
      SERVICE_ACCOUNT_DIR: this.accountDir,
      PLUGIN_LOG: join(this.root, "plugin.log"),
      CNI_CACHE_DIR: this.cacheDir,
      KUBERNETES_SERVICE_HOST: "127.0.0.1",
      KUBERNETES_SERVICE_PORT: "1",
      CNI_NETWORK_CONFIG: JSON.stringify({
        type: "linkerd-cni",
        kubernetes: { kubeconfig: "__KUBECONFIG_FILEPATH__" },
      }),
      ...changes,
    };
  }

  /** Starts an installer: that of the built executable, unless another is named. */
  start(environment: Readonly<Record<string, string>> = {}, executable?: string): Installer {
    return this.startAs([], environment, executable);
  }

  /** Starts an installer by a program that runs what its arguments name. */
  startAs(
    runner: readonly string[],
    environment: Readonly<Record<string, string>> = {},
    executable: string = outputs.plugin,
  ): Installer {
    const child = startProgram("install", {
      runner,
      executable,
      env: this.environment({ UNINSTALL_ON_STOP: "always", ...environment }),
    });
    return new Installer(child);
  }

  /**
   * Starts an installer that sees the node's directories as a container does: by mounts of its own.
   * @param options of the mount of the plugin directory, in addition
   */
  startMounted(environment: Readonly<Record<string, string>> = {}, options = "rw"): Installer {
    const host = join(this.root, "host");
    const mounted = ["net.d", "bin", "run", "vendor", "cache"];
    for (const name of mounted) {
      for (const parent of [this.root, host]) mkdirSync(join(parent, name), { recursive: true });
    }
    const mount = `for name in ${mounted.join(" ")}; do mount --bind "$0/$name" "$0/host/$name" || exit; done && mount -o "remount,bind,$OPTIONS" "$0/host/bin" && exec "$@"`;
    return this.startAs(["unshare", "--mount", "sh", "-c", mount, this.root], {
      CONTAINER_MOUNT_PREFIX: host,
      DEST_CNI_NET_DIR: "/net.d",
      DEST_CNI_BIN_DIR: "/bin",
      AUXILIARY_CHAIN_DIR: "/vendor",
      PLUGIN_LOG: "/run/plugin.log",
      CNI_CACHE_DIR: "/cache",
      PATH: "/usr/sbin:/usr/bin:/sbin:/bin",
      OPTIONS: options,
      ...environment,
    });
  }

  /** Makes the node what another version left: its plugin, a kubeconfig and a chain. */
  installFormer(): void {
    writeFileSync(join(this.binDir, "linkerd-cni"), `${SMALL_PLUGIN}# of a former version\n`, { mode: 0o755 });
    const kubeconfig = join(this.netDir, "ZZZ-linkerd-cni-kubeconfig");
    writeFileSync(kubeconfig, '{"users":[{"user":{"token":"former"}}]}', { mode: 0o600 });
    const [name = ""] = readdirSync(this.netDir).filter((each) => each.endsWith(".conflist"));
    const list = JSON.parse(this.read(name)) as { plugins: object[] };
    writeFileSync(join(this.netDir, `${name}.linkerd-cni-original`), this.read(name));
    list.plugins.push({ type: "linkerd-cni", kubernetes: { kubeconfig }, former: true });
    this.write(name, JSON.stringify(list));
    this.write("linkerd-cni.journal", JSON.stringify({ version: 1, owner: "former", left: true }));
  }

  /** Whether the node's plugin runs. */
  answers(name = "linkerd-cni"): boolean {
    return answersVersion(join(this.binDir, name));
  }

  /** Removes it; an installer that was just killed may still have written into it. */
  delete(): void {
    rmSync(this.root, { recursive: true, force: true, maxRetries: 10 });
  }

  private plugins(name: string): readonly Plugin[] {
    const { name: network = "", plugins = [] } = JSON.parse(this.read(name)) as Configuration;
    const folder = join(this.netDir, network);
    const files = existsSync(folder) ? readdirSync(folder).filter((each) => each.endsWith(".conf")) : [];
    return [...plugins, ...files.sort().map((file) => JSON.parse(this.read(join(network, file))) as Plugin)];
  }

  private brokenIn(name: string): readonly string[] {
    const ours = this.plugins(name).find(({ type }) => isPlugin(type));
    if (ours === undefined) return [];
    return this.answers(ours.type) ? [] : [`${name}: its plugin does not run`];
  }
}

/** Runs the plugin as a container runtime does. */
function answersVersion(path: string): boolean {
  try {
    const answer = execFileSync(path, { env: { CNI_COMMAND: "VERSION" }, stdio: ["ignore", "pipe", "ignore"] });
    return answer.includes("supportedVersions");
  } catch {
    return false;
  }
}
