import { SETTING_PREFIX } from "./contract";
import { CniError, ErrorCode, quoted, shortened } from "./errors";
import { idOf, isIdOrNone } from "./ids";
import { isTooLong, MAX_ITEMS, MAX_READ } from "./lists";
import { isControlPlane, type Pod, type SkipReason, skipReason } from "./pod";
import { parsePorts } from "./ports";
import type { RedirectOptions } from "./redirect/options";
import type { LinkerdConfig, Stanza } from "./stanza";
import { formatSubnet, parseSubnet, parseSubnets, unmapped } from "./subnets";

/** The action of an ADD for one pod. */
export type Decision =
  | { readonly kind: "skip"; readonly reason: SkipReason }
  | { readonly kind: "redirect"; readonly options: RedirectOptions };

/** A namespace, reduced to the fields for decisions about its pods. */
export interface Namespace {
  readonly name: string;
  readonly annotations: Readonly<Record<string, string>>;
}

/** The API server's ports if its Service cannot be read. */
export const API_SERVER_PORTS: readonly number[] = [443, 6443];

/** Facts for the decision that are not in the pod. */
export interface Surroundings {
  readonly namespace?: Namespace;
  /** Ports of the API server, which a control-plane pod reaches directly. @default 443 and 6443 */
  readonly apiServerPorts?: readonly number[];
}

interface SettingAnnotation {
  /** Whether Linkerd's injector copies it from a namespace to its pods (pkg/inject, AppendNamespaceAnnotations). */
  readonly isCopied: boolean;
  /** Used only if the annotation itself is not set. */
  readonly alias?: string;
}

/** Annotations that change the redirect, without their common prefix. */
export const SETTINGS = {
  "skip-inbound-ports": { isCopied: true },
  "skip-outbound-ports": { isCopied: true },
  "skip-subnets": { isCopied: true },
  // Linkerd's name for inbound networks does not contain "inbound".
  "skip-inbound-subnets": { isCopied: false, alias: "skip-subnets" },
  "skip-outbound-subnets": { isCopied: false },
  "proxy-uid": { isCopied: true },
  "proxy-gid": { isCopied: true },
} as const satisfies Readonly<Record<string, SettingAnnotation>>;
type Setting = keyof typeof SETTINGS;

/** A text with the value of an option. */
export interface Source {
  readonly from: "configuration" | "pod" | "namespace" | "service";
  readonly text: string;
  /** Its location, for messages. */
  readonly where: string;
}

/**
 * A setting from the pod, else from its namespace; an empty value counts as absent. On one object a setting wins over
 * its alias.
 */
function setting(name: Setting, pod: Pod, namespace: Namespace | undefined): Source | undefined {
  const places = [
    { from: "pod", annotations: pod.annotations, object: `pod ${pod.namespace}/${pod.name}` },
    { from: "namespace", annotations: namespace?.annotations ?? {}, object: `namespace ${namespace?.name}` },
  ] as const;
  const { alias = name }: SettingAnnotation = SETTINGS[name];
  for (const { from, annotations, object } of places) {
    for (const key of [`${SETTING_PREFIX}${name}`, `${SETTING_PREFIX}${alias}`]) {
      const text = annotations[key]?.trim();
      if (text) return { from, text, where: `${key} on ${object}` };
    }
  }
  return undefined;
}

/** Refuses an item of a source, or its whole text. */
function refusal({ where }: Source, wanted: string): (given: string) => never {
  return (given) => {
    throw new CniError(ErrorCode.config, `${where}: ${quoted(given)} is not ${wanted}`);
  };
}

/** Limits the cost of a pod for its node: every item is a rule, or an element of a set, in the kernel. */
function bounded<T>(source: Source, items: readonly T[], what: string): readonly T[] {
  if (items.length <= MAX_ITEMS) return items;
  throw new CniError(
    ErrorCode.config,
    `${source.where}: ${items.length} ${what} are too many, even merged: at most ${MAX_ITEMS} are allowed`,
  );
}

/** The text of a list, unless it is too long. */
function readable({ where, text }: Source): string {
  if (!isTooLong(text)) return text;
  throw new CniError(ErrorCode.config, `${where}: a list of more than ${MAX_READ} items is too long`);
}

const ports = (source: Source) =>
  bounded(source, parsePorts(readable(source), refusal(source, "a port or a range low-high")), "ranges of ports");

/** The expected form of a network, for messages. */
function network(item: string): string {
  const subnet = parseSubnet(item);
  const mapped = subnet && unmapped(subnet);
  return mapped === undefined ? "a network in CIDR notation" : `written as IPv4: write ${formatSubnet(mapped)}`;
}

const subnets = (source: Source) =>
  bounded(
    source,
    parseSubnets(readable(source), (item) => refusal(source, network(item))(item)),
    "networks",
  );

/** The only redirected ports; each is a rule. */
function portsToRedirect({ linkerd, name }: Stanza): readonly number[] {
  const ports = linkerd["ports-to-redirect"];
  if (ports.length <= MAX_ITEMS) return ports;
  const where = `linkerd.ports-to-redirect of network ${shortened(name)}`;
  throw new CniError(
    ErrorCode.config,
    `${where}: ${ports.length} ports are too many: at most ${MAX_ITEMS} are allowed`,
  );
}

/** Longer numbers are not ids. */
const MAX_DIGITS = 20;

/** An id as Go's `strconv.Atoi` reads it; values below 1 mean none. */
function parseId(source: Source): number {
  const { text } = source;
  const id = text.length <= MAX_DIGITS && /^[+-]?\d+$/.test(text) ? Number(text) : Number.NaN;
  return isIdOrNone(id) ? id : refusal(source, "a numeric id")(text);
}

/** Options of the redirect that annotations change. */
type Option = "proxyUid" | "proxyGid" | `skip${"Inbound" | "Outbound"}${"Ports" | "Subnets"}`;

/** The sources of each option, in order. Its value is the items of all of them. */
export type Sources = Readonly<Record<Option, readonly Source[]>>;

/** A field of the stanza as a source. An empty list or an id that means none is not a source. */
function configured(stanza: Stanza, field: keyof LinkerdConfig): readonly Source[] {
  const value = stanza.linkerd[field] ?? 0;
  const text = Array.isArray(value) ? value.join(",") : String(value);
  const isNone = Array.isArray(value) ? value.length === 0 : idOf(Number(value)) === undefined;
  return isNone
    ? []
    : [{ from: "configuration", text, where: `linkerd.${field} of network ${shortened(stanza.name)}` }];
}

/** The API server's ports, for a pod of the control plane. */
function apiServer(pod: Pod, ports: readonly number[] = API_SERVER_PORTS): readonly Source[] {
  return isControlPlane(pod) ? [{ from: "service", text: ports.join(","), where: "service default/kubernetes" }] : [];
}

/** The sources of every option for a pod. Annotations add to inbound ports, and replace everything else. */
export function sourcesOf(pod: Pod, around: Surroundings, stanza: Stanza): Sources {
  const annotated = (name: Setting): readonly Source[] => {
    const found = setting(name, pod, around.namespace);
    return found === undefined ? [] : [found];
  };
  const either = (name: Setting, field: keyof LinkerdConfig): readonly Source[] => {
    const found = annotated(name);
    return found.length > 0 ? found : configured(stanza, field);
  };
  return {
    proxyUid: either("proxy-uid", "proxy-uid"),
    proxyGid: either("proxy-gid", "proxy-gid"),
    skipInboundPorts: [...configured(stanza, "inbound-ports-to-ignore"), ...annotated("skip-inbound-ports")],
    skipOutboundPorts: [
      ...either("skip-outbound-ports", "outbound-ports-to-ignore"),
      ...apiServer(pod, around.apiServerPorts),
    ],
    skipInboundSubnets: either("skip-inbound-subnets", "subnets-to-ignore"),
    skipOutboundSubnets: either("skip-outbound-subnets", "outbound-subnets-to-ignore"),
  };
}

function identity(sources: Sources): Pick<RedirectOptions, "proxyUid" | "proxyGid"> {
  const [proxyUid] = sources.proxyUid.map(parseId).map(idOf);
  const [proxyGid] = sources.proxyGid.map(parseId).map(idOf);
  return { proxyUid, proxyGid };
}

/**
 * Decides what to do for a pod. Pure: no I/O, no clock. @throws CniError 7 for an invalid setting, so that pods do not
 * start half-configured
 */
export function decide(pod: Pod, around: Surroundings, stanza: Stanza): Decision {
  const reason = skipReason(pod);
  if (reason !== undefined) return { kind: "skip", reason };
  const sources = sourcesOf(pod, around, stanza);
  const options: RedirectOptions = {
    inboundPort: stanza.linkerd["incoming-proxy-port"],
    outboundPort: stanza.linkerd["outgoing-proxy-port"],
    portsToRedirect: portsToRedirect(stanza),
    ipv6: stanza.linkerd.ipv6,
    ...identity(sources),
    skipInboundPorts: sources.skipInboundPorts.flatMap(ports),
    skipOutboundPorts: sources.skipOutboundPorts.flatMap(ports),
    skipInboundSubnets: sources.skipInboundSubnets.flatMap(subnets),
    skipOutboundSubnets: sources.skipOutboundSubnets.flatMap(subnets),
  };
  return stanza.linkerd.simulate ? { kind: "skip", reason: "simulated" } : { kind: "redirect", options };
}
