import { CniError, ErrorCode } from "../cni/errors";
import { passedAnnotations } from "../cni/network-config";
import { parseStanza } from "../cni/parse-stanza";
import { hasProxyMark, isInjected } from "../cni/pod";
import { previousResult } from "../cni/result";
import type { LinkerdConfig } from "../cni/stanza";
import type { Call } from "./call";
import type { Host } from "./host/port";
import { Iptables } from "./iptables/apply";
import { compareRules, hasLegacyNat } from "./modes";
import { inNamespace } from "./namespace";
import { natChains } from "./netlink/readback";
import { netfilter } from "./netlink/socket";

/** Whether anybody has set nat rules: linkerd-init does where a pod was injected before the plugin came. */
function hasNatRules(host: Host, linkerd: LinkerdConfig): boolean {
  try {
    // The table of legacy iptables outlives its rules.
    if (hasLegacyNat(host) && new Iptables(host, "legacy", linkerd).hasRules()) return true;
    return natChains(netfilter(host), "ip").some(({ rules }) => rules.length > 0);
  } catch {
    // It cannot be told, so nobody is blamed.
    return true;
  }
}

/**
 * Compares the rules in force in a pod's namespace with what ADD set there. It asks nobody: annotations may have been
 * edited since, the pod's object be gone and the API server be down, when a runtime calls CHECK at its restart and lets
 * go of the pod's address where it fails.
 */
export function check({ host, config, target }: Call): string {
  if (previousResult(config.source) === undefined) throw new CniError(ErrorCode.config, "CHECK needs a prevResult");
  const { linkerd } = parseStanza(config.source, config.name);
  const annotations = passedAnnotations(config) ?? {};
  const isMeshed = isInjected(annotations) && hasProxyMark(annotations) && !linkerd.simulate;
  const difference = inNamespace(host, target.netns, () => {
    // First of all: iptables makes a table where it only looks.
    if (isMeshed && !hasNatRules(host, linkerd))
      return "the redirect of this meshed pod is missing: there are no nat rules";
    return compareRules(host, linkerd).difference;
  });
  if (difference !== undefined) throw new CniError(ErrorCode.rulesDiffer, difference);
  return "";
}
