import { podFromObject } from "../../cni/api-objects";
import { SETTINGS } from "../../cni/decide";
import { extraLookup } from "../../cni/evidence";
import type { RedirectOptions } from "../../cni/redirect/options";
import { type Evidence, nameOf, type Outcome } from "./evidence";

function addressNotes({ pod }: Evidence, { ipv6, ...options }: RedirectOptions): readonly string[] {
  if (ipv6) return [];
  const addresses = (pod.status?.podIPs ?? []).flatMap(({ ip }) => (ip?.includes(":") ? [ip] : []));
  const idle = [...options.skipInboundSubnets, ...options.skipOutboundSubnets].filter(({ family }) => family === "ip6");
  return [
    ...addresses.map(
      (ip) => `it has the IPv6 address ${ip}, and connections over IPv6 pass the proxy by: set disableIPv6 to false`,
    ),
    ...idle.map(({ text }) => `${text} has no effect while the rules are for IPv4 only: set disableIPv6 to false`),
  ];
}

const PREFIX = "config.linkerd.io/";
/** Linkerd's injector copies its own annotations, of which these are none (pkg/inject, AppendNamespaceAnnotations). */
const NOT_COPIED: readonly string[] = [`${PREFIX}skip-inbound-subnets`, `${PREFIX}skip-outbound-subnets`];

function whyUnheard(key: string, needed: ReturnType<typeof extraLookup>): string {
  if (needed === "apiServerPorts") return "a pod of the control plane is redirected by its own alone";
  if (NOT_COPIED.includes(key)) return "the injector does not copy it: put it on the pod";
  return "the injector copied the namespace's settings when it made the pod: make it anew";
}

/** What a namespace says that does not count for a pod. */
function namespaceNotes(evidence: Evidence): readonly string[] {
  const name = nameOf(evidence.pod);
  const pod = podFromObject(name, evidence.pod);
  const needed = extraLookup(pod);
  if (needed === "namespace" && evidence.namespace === undefined) {
    return [`the namespace ${name.namespace} is not known here: its annotations would count too`];
  }
  if (needed === "namespace") return [];
  const annotations = evidence.namespace?.metadata?.annotations ?? {};
  const unheard = SETTINGS.map((setting) => `${PREFIX}${setting}`).filter(
    (key) => annotations[key]?.trim() && annotations[key] !== pod.annotations[key],
  );
  const where = `on namespace ${name.namespace} does not count`;
  return unheard.map((key) => `${key} ${where}: ${whyUnheard(key, needed)}`);
}

function describe(outcome: Outcome): string {
  return `${outcome.kind === "does not start" ? "it does not start" : `it is ${outcome.kind}`}: ${outcome.because}`;
}

/** What is worth knowing besides. @param without the outcome where the runtime passes no annotations */
export function notesOf(evidence: Evidence, outcome: Outcome, without: Outcome): readonly string[] {
  return [
    ...(evidence.configMap === undefined && outcome.kind !== "left alone"
      ? ["no ConfigMap linkerd-cni-config is known here: this is by the chart's defaults"]
      : []),
    ...(outcome.kind === "redirected" ? [...namespaceNotes(evidence), ...addressNotes(evidence, outcome.options)] : []),
    ...(outcome.kind === without.kind
      ? []
      : [`where the runtime passes no annotations (containerd before 1.5, CRI-O before 1.29), ${describe(without)}`]),
  ];
}
