import { podFromObject } from "../../cni/api-objects";
import { decide, type Namespace } from "../../cni/decide";
import type { RedirectOptions } from "../../cni/redirect/options";
import type { Stanza } from "../../cni/stanza";
import type { Knock } from "./knock";
import type { Pod } from "./pod";
import type { Redirect } from "./roster";

/**
 * How to learn, without any privilege, whether connections to a pod are redirected: a port on which nothing listens
 * accepts a connection only where it is redirected to the proxy.
 */
export interface AuditPlan {
  readonly host: string;
  /** The proxy itself has to answer, or a refusal says nothing. */
  readonly proxyPort: number;
  readonly ports: readonly number[];
}

/** Far apart, and hardly ever used. */
const LIKELY_UNUSED = [64_321, 48_611, 31_997, 22_907];
const ENOUGH = 3;

function isRedirected(port: number, { portsToRedirect, skipInboundPorts, inboundPort }: RedirectOptions): boolean {
  if (port === inboundPort || skipInboundPorts.some(({ low, high }) => low <= port && port <= high)) return false;
  return portsToRedirect.length === 0 || portsToRedirect.includes(port);
}

function declaredPorts({ spec }: Pod): readonly (number | undefined)[] {
  const containers = [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])];
  return containers.flatMap(({ ports }) => ports ?? []).map(({ containerPort }) => containerPort);
}

/** Which ports to try, or undefined where they could tell nothing. @throws CniError for an annotation that is wrong */
export function planAudit(pod: Pod, namespace: Namespace, stanza: Stanza): AuditPlan | undefined {
  const name = pod.metadata?.name ?? "";
  // An item of a list has no kind of its own.
  const known = podFromObject({ namespace: namespace.name, name }, { ...pod, kind: "Pod" });
  const decision = decide(known, { namespace }, stanza);
  const host = pod.status?.podIP ?? "";
  if (decision.kind === "skip" || host === "") return undefined;
  const { options } = decision;
  if (options.skipInboundSubnets.length > 0 || (host.includes(":") && !options.ipv6)) return undefined;
  const declared = declaredPorts(pod);
  const ports = [...LIKELY_UNUSED, ...options.portsToRedirect]
    .filter((port) => isRedirected(port, options) && !declared.includes(port))
    .slice(0, ENOUGH);
  return ports.length === 0 ? undefined : { host, proxyPort: options.inboundPort, ports };
}

/** What the answers say. Only a proxy that answers, and ports that all refuse, mean that nothing is redirected. */
export function judgeAudit(proxy: Knock, ports: readonly Knock[]): Redirect {
  if (ports.includes("open")) return "present";
  return proxy === "open" && ports.every((each) => each === "refused") ? "absent" : "unknown";
}
