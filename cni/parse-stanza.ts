import type { CniError } from "./errors";
import { idOf, isIdOrNone, MAX_ID } from "./ids";
import { isObject, type Json, type JsonObject, mismatch } from "./json";
import { MAX_PORT } from "./ports";
import {
  IPTABLES_MODES,
  type IptablesMode,
  type LinkerdConfig,
  LOG_LEVELS,
  type LogLevel,
  OWN_MODES,
  PLUGIN_TYPE,
  POD_LOOKUPS,
  ProxyDefault,
  type Stanza,
} from "./stanza";

/** Reads the members of one object. An invalid member is reported, and has its default, as does an absent one. */
class Members {
  constructor(
    private readonly source: JsonObject,
    /** The object's location, for messages. */
    private readonly at: string,
    private readonly report: (problem: CniError) => void,
  ) {}

  object(key: string): Members {
    const value = this.read(key, {}, (given) => (isObject(given) ? given : undefined), "an object");
    return new Members(value, this.path(key), this.report);
  }

  boolean(key: string, fallback: boolean): boolean {
    return this.read(key, fallback, (value) => (typeof value === "boolean" ? value : undefined), "true or false");
  }

  string(key: string, fallback: string): string {
    return this.read(key, fallback, (value) => (typeof value === "string" ? value : undefined), "a string");
  }

  /** The proxy's port, which cannot be 0. */
  port(key: string, fallback: number): number {
    const accept = (value: Json) => (value === 0 ? undefined : port(value));
    return this.read(key, fallback, accept, `a whole number from 1 to ${MAX_PORT}`);
  }

  id(key: string, fallback: number): number {
    const accept = (value: Json) => (typeof value === "number" && isIdOrNone(value) ? value : undefined);
    return this.read(key, fallback, accept, `a whole number up to ${MAX_ID}`);
  }

  oneOf<T extends string>(key: string, fallback: T, allowed: readonly T[]): T {
    const accept = (value: Json) => allowed.find((candidate) => candidate === value);
    return this.read(key, fallback, accept, `one of ${allowed.join(", ")}`);
  }

  /** A list of items that `accept` converts; it returns undefined for an invalid one. */
  list<T>(key: string, accept: (item: Json) => T | undefined, wanted: string): readonly T[] {
    const given = this.read(key, [], (value) => (Array.isArray(value) ? value : undefined), `a list of ${wanted}`);
    const accepted: T[] = [];
    for (const [index, item] of given.entries()) {
      const value = accept(item);
      if (value === undefined) {
        this.report(mismatch(`${this.path(key)}[${index}]`, item, wanted));
        return [];
      }
      accepted.push(value);
    }
    return accepted;
  }

  private path(key: string): string {
    return this.at === "" ? key : `${this.at}.${key}`;
  }

  private read<T>(key: string, fallback: T, accept: (value: Json) => T | undefined, wanted: string): T {
    const value = this.source[key];
    if (value === undefined || value === null) return fallback;
    const accepted = accept(value);
    if (accepted === undefined) this.report(mismatch(this.path(key), value, wanted));
    return accepted ?? fallback;
  }
}

const text = (item: unknown) => (typeof item === "string" ? item : undefined);
const port = (item: unknown) =>
  typeof item === "number" && Number.isInteger(item) && item >= 0 && item <= MAX_PORT ? item : undefined;

function readLinkerd(linkerd: Members): LinkerdConfig {
  return {
    "incoming-proxy-port": linkerd.port("incoming-proxy-port", ProxyDefault.inboundPort),
    "outgoing-proxy-port": linkerd.port("outgoing-proxy-port", ProxyDefault.outboundPort),
    "proxy-uid": linkerd.id("proxy-uid", ProxyDefault.uid),
    "proxy-gid": idOf(linkerd.id("proxy-gid", 0)),
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

/** Names that linkerd's plugin also accepts. */
export const LEVEL_ALIASES: Readonly<Record<string, LogLevel>> = { warning: "warn", fatal: "error", panic: "error" };

/** The log level never keeps a pod from starting: an unknown one is `info`. */
function logLevel(given: unknown): LogLevel {
  const name = typeof given === "string" ? given.toLowerCase() : "";
  return LEVEL_ALIASES[name] ?? LOG_LEVELS.find((level) => level === name) ?? "info";
}

/** Nor does the list of the installer's pods, which repair the rest. */
function ownPods(own: unknown): Stanza["own-pods"] {
  if (!isObject(own)) return undefined;
  const { namespace, daemonset } = own;
  return typeof namespace === "string" && typeof daemonset === "string" ? { namespace, daemonset } : undefined;
}

/** A stanza with defaults, and its first problem. */
export interface StanzaReading {
  readonly stanza: Stanza;
  /** CniError 7 that names the field. Invalid values have their default in `stanza`. */
  readonly problem?: CniError | undefined;
}

/** Reads the plugin's configuration from a runtime's input. A caller that needs all of it throws the problem. */
export function readStanza(source: JsonObject, name: string): StanzaReading {
  let problem: CniError | undefined;
  const members = new Members(source, "", (found) => {
    problem ??= found;
  });
  const stanza: Stanza = {
    name,
    type: PLUGIN_TYPE,
    log_level: logLevel(source["log_level"]),
    kubernetes: { kubeconfig: members.object("kubernetes").string("kubeconfig", "") },
    linkerd: readLinkerd(members.object("linkerd")),
    "pod-lookup": members.oneOf("pod-lookup", "auto", POD_LOOKUPS),
    "strict-status": members.boolean("strict-status", false),
    "own-pods": ownPods(source["own-pods"]),
  };
  return { stanza, problem };
}

/** Reads a valid stanza. @throws CniError 7 that names the field */
export function parseStanza(source: JsonObject, name: string): Stanza {
  const { stanza, problem } = readStanza(source, name);
  if (problem !== undefined) throw problem;
  return stanza;
}
