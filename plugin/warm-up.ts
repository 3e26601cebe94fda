import type { RedirectOptions } from "../cni/redirect/options";
import { redirectRules } from "../cni/redirect/rules";
import { creationBatch } from "./netlink/batch";
import type { Kernel } from "./netlink/port";

/** Options that touch every kind of rule that is common. */
const TRIAL: RedirectOptions = {
  inboundPort: 1,
  outboundPort: 1,
  proxyUid: 1,
  portsToRedirect: [],
  skipInboundPorts: [{ low: 1, high: 1 }],
  skipOutboundPorts: [],
  skipInboundSubnets: [],
  skipOutboundSubnets: [],
  ipv6: false,
};

/**
 * Loads and runs once what programming rules takes, without any effect: a first run costs two milliseconds and the
 * next a quarter of that, and while the API server thinks there is nothing else to do.
 */
export function warmUp(kernel: Kernel): void {
  creationBatch(redirectRules(TRIAL));
  kernel.prepare();
}
