import type { PortRange } from "../ports";
import type { Family, Subnet } from "../subnets";
import type { RedirectOptions } from "./options";

/** One condition of a rule, in netfilter's own nouns; all of a rule's conditions must hold. */
export type Match =
  | { readonly kind: "tcp" }
  | { readonly kind: "tcp-port"; readonly port: number }
  /** TCP to one of these ports; a list is never longer than {@link MAX_SLOTS} slots. */
  | { readonly kind: "tcp-ports"; readonly ports: readonly PortRange[] }
  | { readonly kind: "source" | "destination"; readonly subnet: Subnet }
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

/** What one rule of iptables' multiport can hold; a range takes two. */
export const MAX_SLOTS = 15;

const leave: Verdict = { kind: "return" };
const slots = (range: PortRange) => (range.low === range.high ? 1 : 2);

/** `80` or `80:90`, as iptables writes it. */
export function portText(range: PortRange): string {
  return range.low === range.high ? `${range.low}` : `${range.low}:${range.high}`;
}

/** Ports in the lists that single rules can hold. */
export function chunkedPorts(ports: readonly PortRange[]): readonly (readonly PortRange[])[] {
  const made: PortRange[][] = [];
  let room = 0;
  for (const range of ports) {
    if (slots(range) > room) {
      made.push([]);
      room = MAX_SLOTS;
    }
    made.at(-1)?.push(range);
    room -= slots(range);
  }
  return made;
}

function ignorePorts(ports: readonly PortRange[]): readonly Rule[] {
  return chunkedPorts(ports).map((chunk) => ({
    matches: [{ kind: "tcp-ports", ports: chunk }],
    verdict: leave,
    comment: `proxy-init/ignore-port-${chunk.map(portText).join(",")}`,
  }));
}

function ignoreSubnets(kind: "source" | "destination", subnets: readonly Subnet[], family: Family): readonly Rule[] {
  const label = kind === "source" ? "ignore-subnet" : "ignore-outbound-subnet";
  return subnets
    .filter((subnet) => subnet.family === family)
    .map((subnet) => ({
      matches: [{ kind, subnet }],
      verdict: leave,
      comment: `proxy-init/${label}-${subnet.text}`,
    }));
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
  return {
    family,
    inbound: [
      ...ignorePorts(options.skipInboundPorts),
      ...ignoreSubnets("source", options.skipInboundSubnets, family),
      ...redirectInbound(options),
    ],
    outbound: [
      ...ignoreProxy(options),
      ignoreLoopback,
      ...ignorePorts(options.skipOutboundPorts),
      ...ignoreSubnets("destination", options.skipOutboundSubnets, family),
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
