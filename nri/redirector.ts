/** Checks the rules in a pod's network namespace, and sets missing ones. */
import { decide } from "../cni/decide";
import { CniError, ErrorCode, shortened } from "../cni/errors";
import { type PassedPod, skipWithoutLookup } from "../cni/evidence";
import { type Get, gatherEvidence } from "../cni/lookup";
import type { StanzaReading } from "../cni/parse-stanza";
import { IPTABLES_CHAINS } from "../cni/redirect/iptables";
import { redirectRules } from "../cni/redirect/rules";
import { FAMILIES } from "../cni/subnets";
import { Open, openFile } from "../host/files";
import { CLONE_NEWNET, enterNamespace, OWN_NAMESPACE, openNamespace } from "../host/namespace";
import type { Host } from "../host/port";
import { applyNative, isUnsupported } from "../netlink/apply";
import { type Comparison, compareNative } from "../netlink/compare";
import { hasLegacyNat } from "../netlink/legacy";
import { findChain } from "../netlink/readback";
import { type Netfilter, type NetfilterSocket, openNetfilter } from "../netlink/socket";
import { basename, dirname } from "../system/path";
import type { Sandbox } from "./messages";

/** The result for a pod. */
export type Redirection =
  /** The pod is not meshed, or something else sets its rules. */
  | { readonly kind: "skipped"; readonly reason: string }
  /** The rules exist. */
  | { readonly kind: "present" }
  /** The rules were missing and were set; with the reason if only the annotations decided. */
  | { readonly kind: "redirected"; readonly unanswered?: string | undefined }
  /** linkerd-init, or a CNI plugin with iptables, has set rules. */
  | { readonly kind: "foreign"; readonly reason: string }
  /** The rules differ from the programmed ones. */
  | { readonly kind: "edited"; readonly reason: string };

interface RedirectorDeps {
  readonly host: Host;
  readonly stanza: StanzaReading;
  /** Directory with the network namespaces of pods. */
  readonly netnsDir: string;
  /** Whether the CNI plugin sets the rules as pods start, so that a pod whose namespace is not found may run. */
  readonly chained: boolean;
  readonly get: Get;
}

/** Chains of linkerd's rules by iptables, and iptables' table of nftables. */
const FOREIGN_TABLE = "nat";
const FOREIGN_CHAINS: readonly string[] = IPTABLES_CHAINS.map(({ name }) => name);

export class Redirector {
  /** Pods skipped after a look-up, by sandbox. */
  private readonly leftAlone = new Map<string, string>();

  constructor(private readonly deps: RedirectorDeps) {}

  /**
   * Sets a pod's rules if they are missing. @param mayBeGone whether the pod may have ended: a runtime's list of
   * running pods can contain ended ones @throws CniError if the pod must not run in this state
   */
  redirect(sandbox: Sandbox, { mayBeGone }: { readonly mayBeGone: boolean }): Redirection {
    const { stanza } = this.deps.stanza;
    const { namespace, name, uid } = sandbox;
    const passed: PassedPod = {
      pod: { namespace, name, uid },
      annotations: sandbox.annotations,
      labels: sandbox.labels,
    };
    const reason = skipWithoutLookup(passed, stanza) ?? this.leftAlone.get(sandbox.id);
    if (reason !== undefined) return { kind: "skipped", reason };
    const misplaced = this.misplacement(sandbox);
    if (misplaced !== undefined && this.deps.chained) return { kind: "skipped", reason: misplaced };
    if (mayBeGone && this.hasEnded(sandbox)) return { kind: "skipped", reason: "it has ended" };
    const path = this.namespaceOf(sandbox);
    if (path === undefined) return { kind: "skipped", reason: "host network" };
    const network = openPodNetwork(this.deps.host, path);
    try {
      return found(network) ?? this.program(network.netfilter.exchange, sandbox.id, passed);
    } finally {
      network.netfilter.close();
    }
  }

  /** Why a pod's network namespace cannot be found; undefined if it can, and on the host network. */
  misplacement({ namespace, name, netns }: Sandbox): string | undefined {
    const { netnsDir } = this.deps;
    if (netns === undefined || resolved(dirname(netns)) === resolved(netnsDir)) return undefined;
    return `pod ${namespace}/${name}: its network namespace ${shortened(netns)} is not in ${netnsDir}: set nri.netnsDir`;
  }

  /** Forgets a removed sandbox. */
  forget(id: string): void {
    this.leftAlone.delete(id);
  }

  /** Forgets all sandboxes but these. */
  retain(ids: ReadonlySet<string>): void {
    for (const id of this.leftAlone.keys()) if (!ids.has(id)) this.leftAlone.delete(id);
  }

  /** Some runtimes still report an ended pod's network namespace. */
  private hasEnded(sandbox: Sandbox): boolean {
    if (sandbox.netns === undefined) return sandbox.hasAddress;
    const path = this.namespaceOf(sandbox);
    return path !== undefined && this.deps.host.access(path) !== 0;
  }

  /** Mount path of the pod's network namespace; undefined on the host network. @throws CniError 101 */
  private namespaceOf(sandbox: Sandbox): string | undefined {
    const { namespace, name, netns, hasAddress } = sandbox;
    if (netns === undefined && hasAddress) {
      const problem = `pod ${namespace}/${name}: the runtime does not say which network namespace it has`;
      throw new CniError(ErrorCode.rulesRefused, problem);
    }
    const misplaced = this.misplacement(sandbox);
    if (misplaced !== undefined) throw new CniError(ErrorCode.rulesRefused, misplaced);
    return netns === undefined ? undefined : `${this.deps.netnsDir}/${basename(netns)}`;
  }

  /**
   * Looks the pod up as the CNI plugin does, for the same decision: a pod with linkerd-init must not be redirected twice,
   * and only the pod's object shows its containers. @throws CniError
   */
  private program(netfilter: Netfilter, id: string, passed: PassedPod): Redirection {
    const { stanza, problem } = this.deps.stanza;
    if (problem !== undefined) throw problem;
    const { evidence, unanswered } = gatherEvidence(passed, stanza["pod-lookup"], this.deps.get);
    const decision = decide(evidence.pod, evidence.around, stanza);
    if (decision.kind === "redirect") {
      applyNative(netfilter, redirectRules(decision.options));
      return { kind: "redirected", unanswered };
    }
    this.leftAlone.set(id, decision.reason);
    return { kind: "skipped", reason: decision.reason };
  }
}

/** A pod's network namespace. */
interface PodNetwork {
  readonly netfilter: NetfilterSocket;
  /** Whether legacy iptables has a nat table there. */
  readonly legacyNat: boolean;
}

/**
 * Enters a pod's network namespace, opens a netfilter socket, which stays there, and returns. A process that cannot
 * return exits at once, since it would serve its port and set rules in the pod. @throws an Error that names the path
 */
function openPodNetwork(host: Host, path: string): PodNetwork {
  const pod = openNamespace(host, path);
  try {
    const own = openFile(host, OWN_NAMESPACE, Open.readOnly);
    try {
      enterNamespace(host, pod, path);
      try {
        const legacyNat = hasLegacyNat(host);
        return { netfilter: openNetfilter(host), legacyNat };
      } finally {
        if (host.setns(own, CLONE_NEWNET) < 0) host.exit(1);
      }
    } finally {
      host.close(own);
    }
  } finally {
    host.close(pod);
  }
}

/** Distributions link /var/run to /run, and a runtime may report either. */
const resolved = (directory: string) => directory.replace(/^\/var\/run(?=\/|$)/, "/run");

/** The rules in the namespace; undefined if absent. @throws SystemError */
function found({ netfilter: { exchange }, legacyNat }: PodNetwork): Redirection | undefined {
  const comparison = compared(exchange);
  if (comparison?.difference !== undefined) return { kind: "edited", reason: comparison.difference };
  if (comparison?.isThere) return { kind: "present" };
  if (legacyNat) return { kind: "foreign", reason: "it has a nat table of legacy iptables" };
  const has = (name: string) =>
    FAMILIES.some((family) => findChain(exchange, family, name, FOREIGN_TABLE) !== undefined);
  const foreign = comparison && FOREIGN_CHAINS.find(has);
  return foreign === undefined ? undefined : { kind: "foreign", reason: `it has a chain ${foreign}` };
}

/** Undefined if the kernel has no nf_tables; setting rules then reports the problem. @throws SystemError */
function compared(netfilter: Netfilter): Comparison | undefined {
  try {
    return compareNative(netfilter);
  } catch (error) {
    if (isUnsupported(error)) return undefined;
    throw error;
  }
}
