import { isObject, type JsonObject, ObjectReader } from "./json";
import {
  IPTABLES_MODES,
  type IptablesMode,
  type LinkerdConfig,
  LOG_LEVELS,
  type LogLevel,
  OWN_MODES,
  PLUGIN_TYPE,
  POD_LOOKUPS,
  type Stanza,
} from "./stanza";

/** Ids as the kernel has them; the highest means "no id". */
export const MAX_ID = 0xffff_fffe;
const MAX_PORT = 0xffff;

const text = (item: unknown) => (typeof item === "string" ? item : undefined);
const port = (item: unknown) =>
  typeof item === "number" && Number.isInteger(item) && item >= 0 && item <= MAX_PORT ? item : undefined;

function parseLinkerd(linkerd: ObjectReader): LinkerdConfig {
  // An id below 1 means none, however far, as with linkerd's plugin.
  const gid = linkerd.integer("proxy-gid", 0, -Infinity, MAX_ID);
  return {
    "incoming-proxy-port": linkerd.integer("incoming-proxy-port", 4143, 1, MAX_PORT),
    "outgoing-proxy-port": linkerd.integer("outgoing-proxy-port", 4140, 1, MAX_PORT),
    "proxy-uid": linkerd.integer("proxy-uid", 2102, -Infinity, MAX_ID),
    ...(gid >= 1 ? { "proxy-gid": gid } : {}),
    "ports-to-redirect": linkerd.list("ports-to-redirect", port, "a port"),
    "inbound-ports-to-ignore": linkerd.list("inbound-ports-to-ignore", text, "a port or a range in a string"),
    "outbound-ports-to-ignore": linkerd.list("outbound-ports-to-ignore", text, "a port or a range in a string"),
    "subnets-to-ignore": linkerd.list("subnets-to-ignore", text, "a network in CIDR notation"),
    "outbound-subnets-to-ignore": linkerd.list("outbound-subnets-to-ignore", text, "a network in CIDR notation"),
    simulate: linkerd.boolean("simulate", false),
    "use-wait-flag": linkerd.boolean("use-wait-flag", false),
    "iptables-mode": linkerd.oneOf<IptablesMode>(
      "redirect-mode",
      linkerd.oneOf("iptables-mode", "auto", IPTABLES_MODES),
      OWN_MODES,
    ),
    ipv6: linkerd.boolean("ipv6", false),
  };
}

/** Names that linkerd's plugin knows too. */
const LEVEL_ALIASES: Readonly<Record<string, LogLevel>> = { warning: "warn", fatal: "error", panic: "error" };

/** How much is logged must not keep a pod from starting: what is not known is `info`. */
export function logLevel({ log_level: given }: JsonObject): LogLevel {
  const name = typeof given === "string" ? given.toLowerCase() : "";
  return LEVEL_ALIASES[name] ?? LOG_LEVELS.find((level) => level === name) ?? "info";
}

/** The installer's own pods; read before all else and leniently, so that a broken stanza does not keep them away. */
export function ownPods(source: JsonObject): Stanza["own-pods"] {
  const own = source["own-pods"];
  if (!isObject(own)) return undefined;
  const { namespace, daemonset } = own;
  return typeof namespace === "string" && typeof daemonset === "string" ? { namespace, daemonset } : undefined;
}

/**
 * The plugin's own configuration out of what a runtime sent, every default filled in.
 * @throws CniError 7 that names the field
 */
export function parseStanza(source: JsonObject, name: string): Stanza {
  const stanza = ObjectReader.of(source, "");
  const own = ownPods(source);
  return {
    name,
    type: PLUGIN_TYPE,
    log_level: logLevel(source),
    kubernetes: { kubeconfig: stanza.object("kubernetes").string("kubeconfig", "") },
    linkerd: parseLinkerd(stanza.object("linkerd")),
    "pod-lookup": stanza.oneOf("pod-lookup", "auto", POD_LOOKUPS),
    "strict-status": stanza.boolean("strict-status", false),
    ...(own === undefined ? {} : { "own-pods": own }),
  };
}
