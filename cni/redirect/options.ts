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

/** Whether connections to a pod's port are redirected, unless their source is skipped. */
export function isRedirected(
  port: number,
  { inboundPort, portsToRedirect, skipInboundPorts }: RedirectOptions,
): boolean {
  if (port === inboundPort || skipInboundPorts.some(({ low, high }) => low <= port && port <= high)) return false;
  return portsToRedirect.length === 0 || portsToRedirect.includes(port);
}
