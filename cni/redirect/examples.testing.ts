import type { PortRange } from "../ports";
import { parseSubnet, type Subnet } from "../subnets";
import type { RedirectOptions } from "./options";

/** Options shared by the tests of all appliers, from the minimum to the maximum of a pod. */

const port = (low: number, high = low): PortRange => ({ low, high });

function subnets(...texts: readonly string[]): readonly Subnet[] {
  return texts.map(parseSubnet).filter((subnet) => subnet !== undefined);
}

const counted = <T>(count: number, make: (index: number) => T) =>
  Array.from({ length: count }, (_, index) => make(index));
/** Ports that are not adjacent. */
const odd = (count: number, from: number) => counted(count, (index) => port(from + 2 * index));
const hosts = (count: number) => counted(count, (index) => `10.0.0.${7 * index}/32`);
const hosts6 = (count: number) => counted(count, (index) => `fd00:${index}::${index}/${64 + index}`);

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
  many: {
    ...plain,
    ipv6: true,
    skipInboundPorts: [port(80, 90), port(85, 95), port(96), ...odd(16, 1001), port(65_000, 65_535), port(0)],
    skipOutboundPorts: [...odd(20, 1), port(40_000, 50_000), ...odd(20, 2001)],
    skipInboundSubnets: subnets(...hosts(9), "10.0.1.0/24", "10.0.2.0/23", "fd00::/16"),
    skipOutboundSubnets: subnets("0.0.0.0/0", ...hosts(8), ...hosts6(9), "::ffff:0:0/96", "ff00::/8"),
  },
} as const satisfies Readonly<Record<string, RedirectOptions>>;
