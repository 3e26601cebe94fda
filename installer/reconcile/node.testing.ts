import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Chaining } from "../../cni/contract";
import { createLog } from "../../process/log";
import type { Verdict } from "../api/api-connection";
import { nodeDisk } from "../apply/disk";
import type { Choice } from "../plan/chaining";
import type { Attachments } from "../plan/removal";
import { PRIMARY_PLUGINS, writePrimaryPlugins } from "../primary-plugins.testing";
import { readSettings } from "../settings";
import { pathsOf } from "../state/paths";
import { pluginFile } from "../state/plugin-file";
import { createInstruments } from "../telemetry/instruments";
import { Reconciler, type ReconcilerDeps } from "./reconciler";
import { stanzaForNode } from "./stanza";

/** A list as written by a primary CNI. */
export const LIST = '{"cniVersion":"1.0.0","name":"k","plugins":[\n {"type":"bridge"}\n]}\n';
/** Answers only VERSION. */
export const PLUGIN = `#!/bin/sh
echo '{"cniVersion":"1.0.0","supportedVersions":["1.0.0"]}'
`;
/** A single plugin's file. */
export const SINGLE = '{"cniVersion":"0.3.1","name":"k","type":"bridge"}\n';

/** A node's directories in a temporary place, and its installers. */
export class Node {
  readonly root = mkdtempSync(join(tmpdir(), "linkerd-cni-node-"));
  readonly lines: string[] = [];
  now = 0;
  netDir = "/net.d";
  binDir = "/bin";
  /** Whether the node's runtime does; undefined: unknown. */
  passesOverBroken: boolean | undefined;
  /** As in the Node's status. */
  runtime: string | undefined;
  chaining: Chaining = "auto";
  multipleBinDirs = false;
  auxiliaryDir = "/vendor";
  /** How pods are chained, after the last look at the node. */
  choice: Choice | undefined;
  /** Whether the node's runtime opens a folder of drop-ins when it is made to read again. */
  isOpened = async (_folder: string, meanwhile: () => Promise<unknown>): Promise<boolean> => {
    await meanwhile();
    return true;
  };
  /** Whether an owner is a pod of the installers' DaemonSet; undefined: unknown. */
  isSibling: (owner: string) => boolean | undefined = () => undefined;
  /** The API server's verdict on a token. */
  accepts: (token: string) => Verdict = () => ({ kind: "accepted" });
  /** Whether an installer listens for look-ups. */
  isServed = true;
  /** Called while an installer that removes everything waits, with the milliseconds. */
  sleep: (ms: number) => Promise<unknown> = async () => undefined;

  constructor(files: Readonly<Record<string, string>>) {
    for (const directory of ["net.d", "bin", "image", "account"]) mkdirSync(this.path(directory));
    writeFileSync(this.path("image", "linkerd-cni"), PLUGIN);
    chmodSync(this.path("image", "linkerd-cni"), 0o755);
    writePrimaryPlugins(this.path("bin"));
    writeFileSync(this.path("account", "token"), "token-1\n");
    writeFileSync(this.path("account", "ca.crt"), "CA");
    for (const [name, text] of Object.entries(files)) writeFileSync(this.path("net.d", name), text);
  }

  path(...names: string[]): string {
    return join(this.root, ...names);
  }

  read(name: string): string {
    return readFileSync(this.path("net.d", name), "utf8");
  }

  types(name: string): readonly string[] {
    return JSON.parse(this.read(name)).plugins.map(({ type }: { type: string }) => type);
  }

  /** Every file of both directories with its content, except the primary CNI's plugins. */
  content(): Readonly<Record<string, string>> {
    return Object.fromEntries(
      ["net.d", "bin"].flatMap((directory) =>
        readdirSync(this.path(directory))
          .filter((name) => !PRIMARY_PLUGINS.includes(name) && !statSync(this.path(directory, name)).isDirectory())
          .map((name) => [`${directory}/${name}`, readFileSync(this.path(directory, name), "utf8")]),
      ),
    );
  }

  /** Names of the plugin's files. */
  pluginFiles(): readonly string[] {
    return readdirSync(this.path("bin")).filter((name) => name.startsWith("linkerd-cni"));
  }

  /** Creates the directory for the installer's note about its directories. */
  makeRunDirectory(): void {
    mkdirSync(this.path("run", "linkerd-cni"), { recursive: true });
  }

  /** Makes later installers use another directory, or the same one under another name. */
  move(from: string, to: string, isLink = false): void {
    if (isLink) symlinkSync(this.path(from), this.path(to));
    else mkdirSync(this.path(to));
    if (from === "bin") this.binDir = `/${to}`;
    else this.netDir = `/${to}`;
  }

  installer(owner = "first", chained = true, deps: Partial<Pick<ReconcilerDeps, "disk" | "plugin">> = {}) {
    const settings = readSettings([], {
      CONTAINER_MOUNT_PREFIX: this.root,
      DEST_CNI_NET_DIR: this.netDir,
      DEST_CNI_BIN_DIR: this.binDir,
      CONTAINER_CNI_BIN_DIR: this.path("image"),
      CHAINING: this.chaining,
      AUXILIARY_CHAIN_DIR: this.auxiliaryDir,
      SERVICE_ACCOUNT_DIR: this.path("account"),
      KUBERNETES_SERVICE_HOST: "fd00::1",
      KUBERNETES_SERVICE_PORT: "6443",
      CNI_NETWORK_CONFIG: JSON.stringify({
        type: "linkerd-cni",
        kubernetes: { kubeconfig: "__KUBECONFIG_FILEPATH__" },
      }),
    });
    const log = createLog("info", "plain", (line) => this.lines.push(line));
    const reconciler = new Reconciler({
      paths: pathsOf(settings),
      owner,
      wanted: () => ({
        chained,
        chaining: this.chaining,
        runtime: this.runtime,
        multipleBinDirs: this.multipleBinDirs,
        stanza: stanzaForNode(settings, undefined),
      }),
      disk: { ...nodeDisk, isOpened: (folder, meanwhile) => this.isOpened(folder, meanwhile) },
      plugin: pluginFile(),
      accepts: async () => this.accepts(readFileSync(this.path("account", "token"), "utf8").trim()),
      isServed: async () => this.isServed,
      passesOverBroken: () => this.passesOverBroken,
      log,
      instruments: createInstruments(),
      sleep: (ms) => this.sleep(ms),
      ...deps,
    });
    return {
      prepare: () => reconciler.prepare(),
      reconcile: async () => {
        const { choice, ...status } = await reconciler.reconcile(this.now);
        this.choice = choice;
        return status;
      },
      remove: (keepPlugin: boolean, attachments?: Attachments) =>
        reconciler.remove({ keepPlugin, all: this.isSibling, ...(attachments === undefined ? {} : { attachments }) }),
      leave: () => reconciler.leave(),
    };
  }
}
