import type { PortRange } from "../ports";
import type { Family, Subnet } from "../subnets";
import type { RedirectOptions } from "./options";

/** The address of a connection that a condition matches. */
export type AddressKind = "source" | "destination";

/** One condition of a rule, in netfilter's terms; all of a rule's conditions must hold. */
export type Match =
  | { readonly kind: "tcp" }
  | { readonly kind: "tcp-port"; readonly port: number }
  /** TCP to one of these ports; never empty. */
  | { readonly kind: "tcp-ports"; readonly ports: readonly PortRange[] }
  /** From, or to, one of these networks of the rule's family; never empty. */
  | { readonly kind: AddressKind; readonly subnets: readonly Subnet[] }
  | { readonly kind: "uid" | "gid"; readonly id: number }
  | { readonly kind: "out-interface"; readonly name: "lo" };

export type Verdict = { readonly kind: "return" } | { readonly kind: "redirect"; readonly port: number };

export interface Rule {
  readonly matches: readonly Match[];
  readonly verdict: Verdict;
  readonly comment: string;
}

/** The rules of one address family, in order, for inbound and outbound connections. */
export interface RuleSet {
  readonly family: Family;
  readonly inbound: readonly Rule[];
  readonly outbound: readonly Rule[];
}

const leave: Verdict = { kind: "return" };

/** `80` or `80:90`, as iptables writes it. */
export function portText(range: PortRange): string {
  return range.low === range.high ? `${range.low}` : `${range.low}:${range.high}`;
}

/** The text for the star of a comment. */
function matchedText(match: Match): string {
  switch (match.kind) {
    case "tcp-ports":
      return match.ports.map(portText).join(",");
    case "tcp-port":
      return `${match.port}`;
    case "source":
    case "destination":
      return match.subnets.map(({ text }) => text).join(",");
    default:
      return "";
  }
}

/** A rule with its comment, `kind` after `proxy-init/`, with a star for the matched value. */
function ruleOf(kind: string, match: Match, verdict: Verdict): Rule {
  return { matches: [match], verdict, comment: `proxy-init/${kind.replace("*", () => matchedText(match))}` };
}

/** The rule that skips connections to these ports. */
export function ignorePorts(ports: readonly PortRange[]): Rule {
  return ruleOf("ignore-port-*", { kind: "tcp-ports", ports }, leave);
}

/** The rule that skips connections from, or to, these networks. */
function ignoreSubnets(kind: AddressKind, subnets: readonly Subnet[]): Rule {
  return ruleOf(kind === "source" ? "ignore-subnet-*" : "ignore-outbound-subnet-*", { kind, subnets }, leave);
}

/** A rule about networks as rules about one network each; any other as it is. */
export function perSubnet(rule: Rule): readonly Rule[] {
  const [match] = rule.matches;
  if (match?.kind !== "source" && match?.kind !== "destination") return [rule];
  return match.subnets.map((subnet) => ignoreSubnets(match.kind, [subnet]));
}

/** The rule for a list, or none if the list is empty. */
function ruleAbout<T>(items: readonly T[], rule: (items: readonly T[]) => Rule): readonly Rule[] {
  return items.length === 0 ? [] : [rule(items)];
}

function redirectInbound({ inboundPort, portsToRedirect }: RedirectOptions): readonly Rule[] {
  const verdict: Verdict = { kind: "redirect", port: inboundPort };
  if (portsToRedirect.length === 0) return [ruleOf("redirect-all-incoming-to-proxy-port", { kind: "tcp" }, verdict)];
  return portsToRedirect.map((port) => ruleOf("redirect-port-*-to-proxy-port", { kind: "tcp-port", port }, verdict));
}

/** The proxy's own traffic, which would otherwise loop forever. */
function ignoreProxy({ proxyUid, proxyGid }: RedirectOptions): readonly Rule[] {
  return [
    ...(proxyUid === undefined ? [] : [ruleOf("ignore-proxy-user-id", { kind: "uid", id: proxyUid }, leave)]),
    ...(proxyGid === undefined ? [] : [ruleOf("ignore-proxy-group-id", { kind: "gid", id: proxyGid }, leave)]),
  ];
}

const ignoreLoopback = ruleOf("ignore-loopback", { kind: "out-interface", name: "lo" }, leave);

function rulesOf(family: Family, options: RedirectOptions): RuleSet {
  const ofFamily = (subnet: Subnet) => subnet.family === family;
  return {
    family,
    inbound: [
      ...ruleAbout(options.skipInboundPorts, ignorePorts),
      ...ruleAbout(options.skipInboundSubnets.filter(ofFamily), (subnets) => ignoreSubnets("source", subnets)),
      ...redirectInbound(options),
    ],
    outbound: [
      ...ignoreProxy(options),
      ignoreLoopback,
      ...ruleAbout(options.skipOutboundPorts, ignorePorts),
      ...ruleAbout(options.skipOutboundSubnets.filter(ofFamily), (subnets) => ignoreSubnets("destination", subnets)),
      ruleOf("redirect-all-outgoing-to-proxy-port", { kind: "tcp" }, { kind: "redirect", port: options.outboundPort }),
    ],
  };
}

/** The rules for a pod: always IPv4, and IPv6 if enabled. */
export function redirectRules(options: RedirectOptions): readonly RuleSet[] {
  const families: readonly Family[] = options.ipv6 ? ["ip", "ip6"] : ["ip"];
  return families.map((family) => rulesOf(family, options));
}
