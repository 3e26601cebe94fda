import { CNI_NAME } from "./contract";

/**
 * The plugin's own configuration: one entry in the `plugins` list of a CNI configuration list.
 *
 * This is its only declaration. The chart writes it to ConfigMap `linkerd-cni-config`, the installer adds it to the end
 * of the node's chain, and the plugin reads it from standard input. Key names are linkerd's.
 */

/**
 * The value of `type`: the file name of the plugin's executable. linkerd's own installer puts its plugin there, and
 * deletes it when it stops.
 */
export const PLUGIN_TYPE = CNI_NAME;

/**
 * The same in a drop-in and in Multus' auxiliary chain, which linkerd's installer does not know and leaves in force: a
 * second copy of the executable, which only our installers replace and delete.
 */
export const DROPIN_TYPE = `${CNI_NAME}-redirect`;

export const PLUGIN_TYPES: readonly string[] = [PLUGIN_TYPE, DROPIN_TYPE];

/** Whether a plugin is ours, or linkerd's. */
export const isPlugin = (type: string | undefined): boolean => type !== undefined && PLUGIN_TYPES.includes(type);

const CALL = new RegExp(`"type"\\s*:\\s*"(?:${PLUGIN_TYPES.join("|")})"`);

/** Whether a configuration's text calls the plugin, at any depth, including Multus' delegates. */
export const callsPlugin = (text: string): boolean => CALL.test(text);

/** The ConfigMap's placeholder for `kubernetes.kubeconfig`; the installer replaces it by the path on the node. */
export const KUBECONFIG_PLACEHOLDER = "__KUBECONFIG_FILEPATH__";

/** CNI capability with which a runtime passes the pod's annotations in `runtimeConfig` (containerd 1.5, CRI-O 1.29). */
export const POD_ANNOTATIONS = "io.kubernetes.cri.pod-annotations";

/** Modes that linkerd's plugin does not know and refuses in `iptables-mode`. */
export const OWN_MODES = ["auto", "native"] as const;
export type OwnMode = (typeof OWN_MODES)[number];
export const IPTABLES_MODES = [...OWN_MODES, "nft", "legacy", "plain"] as const;
/** How the rules are programmed; see `cni/redirect`. */
export type IptablesMode = (typeof IPTABLES_MODES)[number];

export const POD_LOOKUPS = ["auto", "api", "annotations"] as const;
/** The plugin's source of data about a pod: `auto` asks the API server only if annotations do not decide. */
export type PodLookup = (typeof POD_LOOKUPS)[number];

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export const LOG_FORMATS = ["plain", "json"] as const;
/** Log format of the installer and the controllers. */
export type LogFormat = (typeof LOG_FORMATS)[number];

/** Linkerd's defaults for its proxy. */
export const ProxyDefault = { inboundPort: 4143, outboundPort: 4140, uid: 2102 } as const;

/** The `linkerd` object: what is redirected, and how. */
export interface LinkerdConfig {
  /** Port the proxy accepts inbound connections on. @default 4143 */
  readonly "incoming-proxy-port": number;
  /** Port the proxy accepts outbound connections on. @default 4140 */
  readonly "outgoing-proxy-port": number;
  /** User id the proxy runs as; its traffic is not redirected. @default 2102 */
  readonly "proxy-uid": number;
  /** Group id the proxy runs as. @default none: no rule */
  readonly "proxy-gid"?: number | undefined;
  /** Inbound ports that are redirected. @default [] (all) */
  readonly "ports-to-redirect": readonly number[];
  /** Inbound ports or `low-high` ranges that are not redirected. @default [] */
  readonly "inbound-ports-to-ignore": readonly string[];
  /** Outbound ports or `low-high` ranges that are not redirected. @default [] */
  readonly "outbound-ports-to-ignore": readonly string[];
  /** Source networks (CIDR) whose inbound connections are not redirected. @default [] */
  readonly "subnets-to-ignore": readonly string[];
  /** Destination networks (CIDR) to which connections are not redirected. @default [] */
  readonly "outbound-subnets-to-ignore": readonly string[];
  /** Decide and log, but program nothing. @default false */
  readonly simulate: boolean;
  /** Wait for the xtables lock (`-w`) in modes `nft`, `legacy` and `plain`. @default false */
  readonly "use-wait-flag": boolean;
  /**
   * How the rules are programmed. The chart writes a mode that linkerd's plugin also accepts, and our mode in
   * `redirect-mode`, so that either plugin runs with the same ConfigMap. @default "auto"
   */
  readonly "iptables-mode": IptablesMode;
  /** Takes precedence over `iptables-mode`, and replaces it when parsed. @default none */
  readonly "redirect-mode"?: OwnMode;
  /** Program the same rules for IPv6. @default false */
  readonly ipv6: boolean;
}

/** The whole entry, as the plugin needs it: every default filled in. */
export interface Stanza {
  readonly name: string;
  readonly type: typeof PLUGIN_TYPE;
  /** @default "info" */
  readonly log_level: LogLevel;
  /** `kubeconfig` is the path on the node. */
  readonly kubernetes: { readonly kubeconfig: string };
  readonly linkerd: LinkerdConfig;
  /** @default "auto" */
  readonly "pod-lookup": PodLookup;
  /** STATUS fails when the stanza is invalid, or the mode cannot work. @default false */
  readonly "strict-status": boolean;
  /** The directory on the node of the log of calls and the installer's socket. @default "/run/linkerd-cni" */
  readonly "run-dir"?: string;
  /** The installer's own pods, which always pass. */
  readonly "own-pods"?: { readonly namespace: string; readonly daemonset: string } | undefined;
  /** In a drop-in: the path of the list that it extends. */
  readonly extends?: string;
  /** Declares the data that the runtime should pass in `runtimeConfig`. */
  readonly capabilities?: Readonly<Record<string, boolean>>;
}
