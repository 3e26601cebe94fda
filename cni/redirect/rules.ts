import type { PortRange } from "../ports";
import type { Family, Subnet } from "../subnets";
import type { RedirectOptions } from "./options";

/** Which address of a connection a condition is about. */
export type AddressKind = "source" | "destination";

/** One condition of a rule, in netfilter's own nouns; all of a rule's conditions must hold. */
export type Match =
  | { readonly kind: "tcp" }
  | { readonly kind: "tcp-port"; readonly port: number }
  /** TCP to one of these ports, however many; never none. */
  | { readonly kind: "tcp-ports"; readonly ports: readonly PortRange[] }
  /** From, or to, one of these networks of the rule's family, however many; never none. */
  | { readonly kind: AddressKind; readonly subnets: readonly Subnet[] }
  | { readonly kind: "uid" | "gid"; readonly id: number }
  | { readonly kind: "out-interface"; readonly name: string };

export type Verdict = { readonly kind: "return" } | { readonly kind: "redirect"; readonly port: number };

export interface Rule {
  readonly matches: readonly Match[];
  readonly verdict: Verdict;
  readonly comment: string;
}

/** The rules of one address family, in order, for connections that come in and for those that go out. */
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

/** The rule that leaves connections to these ports alone. */
export function ignorePorts(ports: readonly PortRange[]): Rule {
  return {
    matches: [{ kind: "tcp-ports", ports }],
    verdict: leave,
    comment: `proxy-init/ignore-port-${ports.map(portText).join(",")}`,
  };
}

/** The rule that leaves connections from, or to, these networks alone. */
export function ignoreSubnets(kind: AddressKind, subnets: readonly Subnet[]): Rule {
  const label = kind === "source" ? "ignore-subnet" : "ignore-outbound-subnet";
  return {
    matches: [{ kind, subnets }],
    verdict: leave,
    comment: `proxy-init/${label}-${subnets.map(({ text }) => text).join(",")}`,
  };
}

/** A rule about networks as rules about one network each; any other as it is. */
export function perSubnet(rule: Rule): readonly Rule[] {
  const [match] = rule.matches;
  if (match?.kind !== "source" && match?.kind !== "destination") return [rule];
  return match.subnets.map((subnet) => ignoreSubnets(match.kind, [subnet]));
}

/** The rule about a list, or none where the list is empty. */
function ruleAbout<T>(items: readonly T[], rule: (items: readonly T[]) => Rule): readonly Rule[] {
  return items.length === 0 ? [] : [rule(items)];
}

function redirectInbound(options: RedirectOptions): readonly Rule[] {
  const verdict: Verdict = { kind: "redirect", port: options.inboundPort };
  if (options.portsToRedirect.length === 0) {
    return [{ matches: [{ kind: "tcp" }], verdict, comment: "proxy-init/redirect-all-incoming-to-proxy-port" }];
  }
  return options.portsToRedirect.map((port) => ({
    matches: [{ kind: "tcp-port", port }],
    verdict,
    comment: `proxy-init/redirect-port-${port}-to-proxy-port`,
  }));
}

/** The proxy's own traffic, which would otherwise come back to it for ever. */
function ignoreProxy({ proxyUid, proxyGid }: RedirectOptions): readonly Rule[] {
  const ignore = (kind: "uid" | "gid", id: number | undefined, whose: string): readonly Rule[] =>
    id === undefined
      ? []
      : [{ matches: [{ kind, id }], verdict: leave, comment: `proxy-init/ignore-proxy-${whose}-id` }];
  return [...ignore("uid", proxyUid, "user"), ...ignore("gid", proxyGid, "group")];
}

const ignoreLoopback: Rule = {
  matches: [{ kind: "out-interface", name: "lo" }],
  verdict: leave,
  comment: "proxy-init/ignore-loopback",
};

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
      {
        matches: [{ kind: "tcp" }],
        verdict: { kind: "redirect", port: options.outboundPort },
        comment: "proxy-init/redirect-all-outgoing-to-proxy-port",
      },
    ],
  };
}

/** The rules for a pod: IPv4 always, IPv6 where it is asked for. */
export function redirectRules(options: RedirectOptions): readonly RuleSet[] {
  const families: readonly Family[] = options.ipv6 ? ["ip", "ip6"] : ["ip"];
  return families.map((family) => rulesOf(family, options));
}
