import { isConfigName } from "../cni/conflist/read";
import {
  CALL_LOG,
  CHAININGS,
  type Chaining,
  InstallerVariable,
  KUBECONFIG_FILE,
  LOOKUP_SOCKET_NAME,
  MOUNT_PREFIX,
  NodePath,
  PodVariable,
  STOP_POLICIES,
  type StopPolicy,
} from "../cni/contract";
import { MAX_PORT } from "../cni/ports";
import { LOG_LEVELS, type LogLevel } from "../cni/stanza";
import { type InCluster, readInCluster } from "../kubernetes/in-cluster";
import { LOG_FORMATS, type LogFormat } from "../process/log";
import { type Environment, SettingsReader } from "../process/settings";
import { dirname, join } from "../system/path";
import { type NodeTaint, readNodeTaint } from "./taint";

/** A directory of the node: its path on the node, and its mount path here. */
interface NodeDirectory {
  readonly onNode: string;
  readonly here: string;
}

/** The settings from the environment and the command line. */
export interface Settings {
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
  /** Prefix of the mounted directories of the node; empty for none. */
  readonly mountPrefix: string;
  readonly netDir: NodeDirectory;
  readonly binDir: NodeDirectory;
  /** Directory in this container that holds the plugin. */
  readonly pluginDir: string;
  /** Name of the kubeconfig of linkerd's plugin. */
  readonly kubeconfigName: string;
  /** Add the plugin to the active configuration; otherwise install everything else, for Multus or the NRI plugin. */
  readonly chained: boolean;
  /** How the plugin is added. */
  readonly chaining: Chaining;
  /** The runtime searches several directories for plugins. */
  readonly multipleBinDirs: boolean;
  /** Multus' folder for its auxiliary chain. */
  readonly auxiliaryDir: NodeDirectory;
  /** The stanza, or the file that contains it. */
  readonly stanza: { readonly text: string } | { readonly file: string };
  readonly cluster: InCluster;
  readonly stopPolicy: StopPolicy;
  /** The identity of this installer: its pod, whichever of the pod's containers runs. */
  readonly identity: string;
  /** This pod; absent if the environment does not name it: a stopping installer then leaves everything in place. */
  readonly pod?: { readonly namespace: string; readonly name: string } | undefined;
  readonly nodeName?: string | undefined;
  /** Key of the taint that is removed from the node when it is ready; absent: no taint is removed. */
  readonly nodeTaint: NodeTaint | undefined;
  /** The plugin's log, as a path here. */
  readonly pluginLog: string;
  /** Copy the plugin's log into the installer's. */
  readonly showsPluginLog: boolean;
  /** The socket for the plugin's look-ups, as a path here: beside its log. */
  readonly lookupSocket: string;
  /** The directory in which libcni and Multus keep attachments. */
  readonly cniCache: NodeDirectory;
  /** Publish Events about pods that the NRI plugin repaired or left unchanged. */
  readonly nriEvents: boolean;
  /** 0 disables it. */
  readonly healthPort: number;
}

const PORTS = [0, MAX_PORT] as const;

/** Only values with special rules; {@link SettingsReader} has the usual ones. */
type Read = SettingsReader<{ readonly "log-level": string }>;

function stanzaSource(read: Read): Settings["stanza"] {
  const file = read.optional(InstallerVariable.stanzaFile);
  const text = read.optional(InstallerVariable.stanza);
  if (file === undefined && text === undefined) {
    read.problems.push("neither CNI_NETWORK_CONFIG nor CNI_NETWORK_CONFIG_FILE is set: the chart sets one of them");
  }
  return file === undefined ? { text: text ?? "" } : { file };
}

function kubeconfigName(read: Read): string {
  const name = read.optional(InstallerVariable.kubeconfigName) ?? KUBECONFIG_FILE;
  if (name.includes("/") || isConfigName(name)) {
    read.problems.push(`KUBECONFIG_FILE_NAME "${name}" must be a plain file name that container runtimes do not read`);
  }
  return name;
}

function podOf(read: Read): Settings["pod"] {
  const namespace = read.optional(PodVariable.podNamespace);
  const name = read.optional(PodVariable.podName);
  return namespace === undefined || name === undefined ? undefined : { namespace, name };
}

function identity(read: Read): string {
  const name = read.optional(PodVariable.podName) ?? read.optional("HOSTNAME") ?? "installer";
  const uid = read.optional(PodVariable.podUid);
  const namespace = read.optional(PodVariable.podNamespace);
  if (uid === undefined) return name;
  return `${namespace === undefined ? "" : `${namespace}/`}${name} (UID ${uid})`;
}

/** Reads the command line and the environment. @throws an Error that lists all problems */
export function readSettings(args: readonly string[], environment: Environment): Settings {
  const read: Read = new SettingsReader({ environment, args, flags: { "log-level": "" } });
  const level =
    read.flag("log-level").value === "" ? read.env(InstallerVariable.logLevel, "info") : read.flag("log-level");
  // An empty value is valid here and means no prefix.
  const prefix = (environment[InstallerVariable.mountPrefix] ?? MOUNT_PREFIX).replace(/\/+$/, "");
  const directory = (name: string, fallback: string): NodeDirectory => {
    const onNode = read.env(name, fallback).absolutePath();
    return { onNode, here: join(prefix === "" ? "/" : prefix, onNode) };
  };
  const pluginLog = directory(InstallerVariable.pluginLog, CALL_LOG).here;
  const settings: Settings = {
    logLevel: level.oneOf(LOG_LEVELS),
    logFormat: read.env(InstallerVariable.logFormat, "plain").oneOf(LOG_FORMATS),
    mountPrefix: prefix,
    netDir: directory(InstallerVariable.netDir, NodePath.netDir),
    binDir: directory(InstallerVariable.binDir, NodePath.binDir),
    pluginDir: read.env(InstallerVariable.pluginDir, NodePath.binDir).absolutePath(),
    kubeconfigName: kubeconfigName(read),
    chained: read.env(InstallerVariable.chained, "true").boolean(),
    chaining: read.env(InstallerVariable.chaining, "auto").oneOf(CHAININGS),
    multipleBinDirs: read.env(InstallerVariable.multipleBinDirs, "false").boolean(),
    auxiliaryDir: directory(InstallerVariable.auxiliaryDir, NodePath.auxiliaryChainDir),
    stanza: stanzaSource(read),
    cluster: readInCluster(read),
    stopPolicy: read.env(InstallerVariable.stopPolicy, "auto").oneOf(STOP_POLICIES),
    identity: identity(read),
    nodeName: read.optional(PodVariable.nodeName),
    pod: podOf(read),
    nodeTaint: readNodeTaint(read),
    pluginLog,
    showsPluginLog: read.env(InstallerVariable.showsPluginLog, "true").boolean(),
    lookupSocket: join(dirname(pluginLog), LOOKUP_SOCKET_NAME),
    cniCache: directory(InstallerVariable.cniCacheDir, NodePath.cniCacheDir),
    nriEvents: read.env(InstallerVariable.nriEvents, "false").boolean(),
    healthPort: read.env(InstallerVariable.healthPort, "0").integer(PORTS),
  };
  if (settings.binDir.here === join(settings.pluginDir)) {
    read.problems.push(
      `CONTAINER_CNI_BIN_DIR "${settings.pluginDir}" is the node's directory itself: it must be the image's`,
    );
  }
  read.finish();
  return settings;
}
