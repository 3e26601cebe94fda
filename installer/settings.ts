import { join } from "node:path";
import { isConfigName } from "../cni/conflist/read";
import { LOG_LEVELS, type LogLevel } from "../cni/stanza";
import type { InCluster } from "../kubernetes/in-cluster";
import { LOG_FORMATS, type LogFormat } from "../process/log";
import type { PluginAccount } from "./api/credentials";

export const STOP_POLICIES = ["auto", "always", "never"] as const;
/** Whether a stopping installer removes what it installed; `auto` asks the API whether its DaemonSet is gone. */
export type StopPolicy = (typeof STOP_POLICIES)[number];

/** A directory of the node: where the node has it, and where it is mounted here. */
export interface NodeDirectory {
  readonly onNode: string;
  readonly here: string;
}

/** All that the environment and the command line decide. */
export interface Settings {
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
  /** Directory under which the node's directories are mounted; empty for none. */
  readonly mountPrefix: string;
  readonly netDir: NodeDirectory;
  readonly binDir: NodeDirectory;
  /** Directory in this container that holds the plugin. */
  readonly pluginDir: string;
  readonly kubeconfigName: string;
  /** Add the plugin to the active configuration; else all but that is installed, for whoever calls it otherwise. */
  readonly chained: boolean;
  /** The stanza, or the file that holds it. */
  readonly stanza: { readonly text: string } | { readonly file: string };
  readonly cluster: InCluster;
  readonly stopPolicy: StopPolicy;
  /** This installer among others: the pod's UID, or its name. */
  readonly identity: string;
  /** Our own pod; absent where the environment does not name it: then a stopping installer leaves everything in place. */
  readonly pod?: { readonly namespace: string; readonly name: string };
  /** The service account whose token the plugin gets; absent: the installer's own token. */
  readonly pluginAccount?: PluginAccount;
  readonly nodeName?: string;
  /** Key of the taint that is removed from the node when it is ready; absent: taints are none of its business. */
  readonly nodeTaint?: { readonly node: string; readonly key: string };
  /** The plugin's log, as seen from here. */
  readonly pluginLog: string;
  /** Publish Events about pods that the plugin could not start as it should. */
  readonly podEvents: boolean;
  /** 0 is off. */
  readonly healthPort: number;
}

const PORTS = [0, 65_535] as const;
/** The API server gives no token for less than ten minutes. */
const TOKEN_SECONDS = [600, 2 ** 31] as const;
const DAY_SECONDS = 24 * 60 * 60;

export type Environment = Readonly<Record<string, string | undefined>>;

/** Reads the environment of one installer; collects what is wrong. */
class Reader {
  readonly problems: string[] = [];
  constructor(private readonly environment: Environment) {}

  optional(name: string): string | undefined {
    return this.environment[name] || undefined;
  }

  directory(name: string, fallback: string): string {
    const value = this.optional(name) ?? fallback;
    if (!value.startsWith("/")) this.problems.push(`${name} "${value}" is not an absolute path`);
    return value.replace(/(?<=.)\/+$/, "");
  }

  integer(name: string, fallback: number, [low, high]: readonly [number, number]): number {
    const value = this.optional(name) ?? String(fallback);
    const number = Number(value);
    if (/^\d+$/.test(value) && number >= low && number <= high) return number;
    this.problems.push(`${name} "${value}" is not a number from ${low} to ${high}`);
    return fallback;
  }

  oneOf<T extends string>(name: string, value: string, allowed: readonly T[]): T {
    const found = allowed.find((item) => item === value);
    if (found === undefined) this.problems.push(`${name} "${value}" is not one of ${allowed.join(", ")}`);
    return found ?? (value as T);
  }

  flag(name: string, fallback: boolean): boolean {
    return this.oneOf(name, this.optional(name) ?? String(fallback), ["true", "false"]) === "true";
  }

  /** Empty is a value here: no prefix. */
  prefix(): string {
    return (this.environment["CONTAINER_MOUNT_PREFIX"] ?? "/host").replace(/\/+$/, "");
  }

  stanza(): Settings["stanza"] {
    const file = this.optional("CNI_NETWORK_CONFIG_FILE");
    const text = this.optional("CNI_NETWORK_CONFIG");
    if (file === undefined && text === undefined) {
      this.problems.push("neither CNI_NETWORK_CONFIG nor CNI_NETWORK_CONFIG_FILE is set: the chart sets one of them");
    }
    return file === undefined ? { text: text ?? "" } : { file };
  }

  kubeconfigName(): string {
    const name = this.optional("KUBECONFIG_FILE_NAME") ?? "ZZZ-linkerd-cni-kubeconfig";
    if (name.includes("/") || isConfigName(name)) {
      this.problems.push(
        `KUBECONFIG_FILE_NAME "${name}" must be a plain file name that container runtimes do not read`,
      );
    }
    return name;
  }
}

function pluginAccount(read: Reader): Pick<Settings, "pluginAccount"> {
  const namespace = read.optional("POD_NAMESPACE");
  const name = read.optional("PLUGIN_SERVICE_ACCOUNT");
  const seconds = read.integer("PLUGIN_TOKEN_SECONDS", DAY_SECONDS, TOKEN_SECONDS);
  if (name === undefined) return {};
  if (namespace === undefined) read.problems.push("PLUGIN_SERVICE_ACCOUNT needs POD_NAMESPACE, the namespace it is in");
  const node = read.optional("NODE_NAME");
  return { pluginAccount: { namespace: namespace ?? "", name, seconds, ...(node === undefined ? {} : { node }) } };
}

function names(read: Reader): Pick<Settings, "nodeName" | "pod"> {
  const nodeName = read.optional("NODE_NAME");
  const namespace = read.optional("POD_NAMESPACE");
  const name = read.optional("POD_NAME");
  return {
    ...(nodeName === undefined ? {} : { nodeName }),
    ...(namespace === undefined || name === undefined ? {} : { pod: { namespace, name } }),
  };
}

function nodeTaint(read: Reader): Pick<Settings, "nodeTaint"> {
  const key = read.optional("NODE_TAINT");
  const node = read.optional("NODE_NAME");
  if (key === undefined) return {};
  if (node === undefined) read.problems.push("NODE_TAINT needs NODE_NAME, the node whose taint it is");
  return { nodeTaint: { node: node ?? "", key } };
}

function cluster(read: Reader): InCluster {
  const host = read.optional("KUBERNETES_SERVICE_HOST");
  const caFile = read.optional("KUBE_CA_FILE");
  if (host === undefined) {
    read.problems.push("KUBERNETES_SERVICE_HOST is not set: outside a pod, set it to the API server's address");
  }
  return {
    host: (host ?? "").replace(/^\[|\]$/g, ""),
    port: read.integer("KUBERNETES_SERVICE_PORT", 443, PORTS),
    serviceAccountDir: read.directory("SERVICE_ACCOUNT_DIR", "/var/run/secrets/kubernetes.io/serviceaccount"),
    ...(caFile === undefined ? {} : { caFile }),
  };
}

const FLAG = "--log-level";

/** The level that `--log-level LEVEL` or `--log-level=LEVEL` names. */
function levelFlag([flag, value, ...others]: readonly string[], problems: string[]): string | undefined {
  if (flag === undefined) return undefined;
  if (flag.startsWith(`${FLAG}=`) && value === undefined) return flag.slice(FLAG.length + 1);
  if (flag === FLAG && others.length === 0) return value ?? "";
  problems.push(`the arguments are "${[flag, value, ...others].join(" ").trim()}": known is only ${FLAG} LEVEL`);
  return undefined;
}

/** Reads the command line and the environment. @throws an Error that lists everything that is wrong */
export function readSettings(args: readonly string[], environment: Environment): Settings {
  const read = new Reader(environment);
  const level = levelFlag(args, read.problems);
  const prefix = read.prefix();
  const at = (onNode: string): NodeDirectory => ({ onNode, here: join(prefix === "" ? "/" : prefix, onNode) });
  const settings: Settings = {
    logLevel: read.oneOf("log level", level ?? read.optional("LOG_LEVEL") ?? "info", LOG_LEVELS),
    logFormat: read.oneOf("LOG_FORMAT", read.optional("LOG_FORMAT") ?? "plain", LOG_FORMATS),
    mountPrefix: prefix,
    netDir: at(read.directory("DEST_CNI_NET_DIR", "/etc/cni/net.d")),
    binDir: at(read.directory("DEST_CNI_BIN_DIR", "/opt/cni/bin")),
    pluginDir: read.directory("CONTAINER_CNI_BIN_DIR", "/opt/cni/bin"),
    kubeconfigName: read.kubeconfigName(),
    chained: read.flag("CHAINED", true),
    stanza: read.stanza(),
    cluster: cluster(read),
    stopPolicy: read.oneOf("UNINSTALL_ON_STOP", read.optional("UNINSTALL_ON_STOP") ?? "auto", STOP_POLICIES),
    identity: read.optional("POD_UID") ?? read.optional("POD_NAME") ?? read.optional("HOSTNAME") ?? "installer",
    ...pluginAccount(read),
    ...names(read),
    ...nodeTaint(read),
    pluginLog: at(read.directory("PLUGIN_LOG", "/run/linkerd-cni/plugin.log")).here,
    podEvents: read.flag("POD_EVENTS", false),
    healthPort: read.integer("HEALTH_PORT", 0, PORTS),
  };
  if (settings.binDir.here === join(settings.pluginDir)) {
    read.problems.push(
      `CONTAINER_CNI_BIN_DIR "${settings.pluginDir}" is the node's directory itself: it must be the image's`,
    );
  }
  if (read.problems.length > 0) throw new Error(read.problems.join("; "));
  return settings;
}
