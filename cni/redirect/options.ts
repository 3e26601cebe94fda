import type { PortRange } from "../ports";
import type { Subnet } from "../subnets";

/** The redirect of one pod, resolved and checked. */
export interface RedirectOptions {
  /** The proxy's ports. */
  readonly inboundPort: number;
  readonly outboundPort: number;
  /** The proxy's user and group, if set: their traffic is not redirected. */
  readonly proxyUid?: number | undefined;
  readonly proxyGid?: number | undefined;
  /** Inbound ports that are redirected; empty: all. */
  readonly portsToRedirect: readonly number[];
  readonly skipInboundPorts: readonly PortRange[];
  readonly skipOutboundPorts: readonly PortRange[];
  /** Sources whose inbound connections are not redirected. */
  readonly skipInboundSubnets: readonly Subnet[];
  /** Destinations to which connections are not redirected. */
  readonly skipOutboundSubnets: readonly Subnet[];
  readonly ipv6: boolean;
}
