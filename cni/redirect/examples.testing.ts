import type { PortRange } from "../ports";
import { parseSubnet, type Subnet } from "../subnets";
import type { RedirectOptions } from "./options";

/** Options that tests of every applier share, from the least to the most that a pod can ask for. */

const port = (low: number, high = low): PortRange => ({ low, high });

function subnets(...texts: readonly string[]): readonly Subnet[] {
  return texts.map(parseSubnet).filter((subnet) => subnet !== undefined);
}

const plain: RedirectOptions = {
  inboundPort: 4143,
  outboundPort: 4140,
  proxyUid: 2102,
  portsToRedirect: [],
  skipInboundPorts: [],
  skipOutboundPorts: [],
  skipInboundSubnets: [],
  skipOutboundSubnets: [],
  ipv6: false,
};

export const examples = {
  plain,
  usual: { ...plain, ipv6: true, skipInboundPorts: [port(4191), port(4190)], skipOutboundPorts: [port(4567, 4568)] },
  chosen: { ...plain, portsToRedirect: [80, 443] },
  whole: {
    inboundPort: 5143,
    outboundPort: 5140,
    proxyUid: 65_000,
    proxyGid: 4_000_000_000,
    portsToRedirect: [],
    skipInboundPorts: [port(22), port(25, 30), port(65_535)],
    skipOutboundPorts: [port(3306), port(1, 1023)],
    skipInboundSubnets: subnets("10.0.0.0/8", "192.168.1.77/32", "172.16.0.0/13", "fd00::/12", "2001:db8::1/128"),
    skipOutboundSubnets: subnets("169.254.169.254/32", "100.64.0.0/10", "fe80::/10"),
    ipv6: true,
  },
} as const satisfies Readonly<Record<string, RedirectOptions>>;
