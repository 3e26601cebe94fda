import { CniError, ErrorCode } from "./errors";
import { MAX_ID } from "./parse-stanza";
import { isControlPlane, type Pod, type SkipReason, skipReason } from "./pod";
import { parsePortRange } from "./ports";
import type { RedirectOptions } from "./redirect/options";
import type { LinkerdConfig, Stanza } from "./stanza";
import { parseSubnet, type Subnet } from "./subnets";

/** What an ADD has to do for one pod. */
export type Decision =
  | { readonly kind: "skip"; readonly reason: SkipReason }
  | { readonly kind: "redirect"; readonly options: RedirectOptions };

/** A namespace, as far as it decides about its pods. */
export interface Namespace {
  readonly name: string;
  readonly annotations: Readonly<Record<string, string>>;
}

/** The API server's ports where its Service cannot be read. */
export const API_SERVER_PORTS: readonly number[] = [443, 6443];

/** Besides the pod: what may stand elsewhere. */
export interface Surroundings {
  readonly namespace?: Namespace;
  /** Ports of the API server, which a control-plane pod reaches directly. @default 443 and 6443 */
  readonly apiServerPorts?: readonly number[];
}

/** Annotations that change the redirect, without their common prefix. */
export const SETTINGS = [
  "skip-inbound-ports",
  "skip-outbound-ports",
  "skip-subnets",
  "skip-outbound-subnets",
  "proxy-uid",
  "proxy-gid",
] as const;
export type Setting = (typeof SETTINGS)[number];
const PREFIX = "config.linkerd.io/";

interface Text {
  readonly text: string;
  /** Where it stands, for messages. */
  readonly where: string;
}

/** A setting from the pod, else from its namespace; an empty value is as good as none. */
function setting(name: Setting, pod: Pod, namespace: Namespace | undefined): Text | undefined {
  const key = `${PREFIX}${name}`;
  const own = pod.annotations[key]?.trim();
  if (own) return { text: own, where: `${key} on pod ${pod.namespace}/${pod.name}` };
  const inherited = namespace?.annotations[key]?.trim();
  return inherited ? { text: inherited, where: `${key} on namespace ${namespace?.name}` } : undefined;
}

function parseItems<T>(source: Text, parse: (item: string) => T | undefined, wanted: string): readonly T[] {
  if (source.text.trim() === "") return [];
  return source.text.split(",").map((item) => {
    const parsed = parse(item);
    if (parsed !== undefined) return parsed;
    throw new CniError(ErrorCode.config, `${source.where}: ${JSON.stringify(item.trim())} is not ${wanted}`);
  });
}

const ports = (source: Text) => parseItems(source, parsePortRange, "a port or a range low-high");
const subnets = (source: Text) => parseItems(source, parseSubnet, "a network in CIDR notation");

function parseId(source: Text): number {
  const id = /^\d{1,10}$/.test(source.text) ? Number(source.text) : Number.NaN;
  if (id <= MAX_ID) return id;
  throw new CniError(ErrorCode.config, `${source.where}: ${JSON.stringify(source.text)} is not a numeric id`);
}

type ListField = Extract<keyof LinkerdConfig, `${string}-to-ignore`>;

function configured<T>(stanza: Stanza, field: ListField, parse: (source: Text) => readonly T[]): readonly T[] {
  return parse({ text: stanza.linkerd[field].join(","), where: `linkerd.${field} of network ${stanza.name}` });
}

type Find = (name: Setting) => Text | undefined;

function subnetOptions(
  stanza: Stanza,
  find: Find,
): Pick<RedirectOptions, "skipInboundSubnets" | "skipOutboundSubnets"> {
  const pick = (annotation: Text | undefined, field: ListField): readonly Subnet[] =>
    annotation === undefined ? configured(stanza, field, subnets) : subnets(annotation);
  return {
    skipInboundSubnets: pick(find("skip-subnets"), "subnets-to-ignore"),
    skipOutboundSubnets: pick(find("skip-outbound-subnets"), "outbound-subnets-to-ignore"),
  };
}

function portOptions(
  stanza: Stanza,
  find: Find,
  apiPorts: readonly number[],
): Pick<RedirectOptions, "skipInboundPorts" | "skipOutboundPorts"> {
  const inbound = find("skip-inbound-ports");
  const outbound = find("skip-outbound-ports");
  return {
    skipInboundPorts: [
      ...configured(stanza, "inbound-ports-to-ignore", ports),
      ...(inbound === undefined ? [] : ports(inbound)),
    ],
    skipOutboundPorts: [
      ...(outbound === undefined ? configured(stanza, "outbound-ports-to-ignore", ports) : ports(outbound)),
      ...apiPorts.map((port) => ({ low: port, high: port })),
    ],
  };
}

/** Root is never the proxy's, and an id below one means none: no rule, as with linkerd's own plugin. */
function identity(stanza: Stanza, find: Find): Pick<RedirectOptions, "proxyUid" | "proxyGid"> {
  const uid = find("proxy-uid");
  const gid = find("proxy-gid");
  const proxyUid = uid === undefined ? stanza.linkerd["proxy-uid"] : parseId(uid);
  const proxyGid = gid === undefined ? (stanza.linkerd["proxy-gid"] ?? 0) : parseId(gid);
  return { ...(proxyUid >= 1 ? { proxyUid } : {}), ...(proxyGid >= 1 ? { proxyGid } : {}) };
}

/**
 * What to do for a pod. Pure: no I/O, no clock.
 * @throws CniError 7 for a setting that cannot be understood: a pod does not start half-configured
 */
export function decide(pod: Pod, around: Surroundings, stanza: Stanza): Decision {
  const reason = skipReason(pod);
  if (reason !== undefined) return { kind: "skip", reason };
  const find: Find = (name) => setting(name, pod, around.namespace);
  const apiPorts = isControlPlane(pod) ? (around.apiServerPorts ?? API_SERVER_PORTS) : [];
  return {
    kind: "redirect",
    options: {
      inboundPort: stanza.linkerd["incoming-proxy-port"],
      outboundPort: stanza.linkerd["outgoing-proxy-port"],
      portsToRedirect: stanza.linkerd["ports-to-redirect"],
      ipv6: stanza.linkerd.ipv6,
      ...identity(stanza, find),
      ...portOptions(stanza, find, apiPorts),
      ...subnetOptions(stanza, find),
    },
  };
}
