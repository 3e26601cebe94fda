/**
 * The evidence for a decision about a pod, and its sources. The plugin and the command line, which explains the
 * plugin's decisions, share it.
 */
import type { Surroundings } from "./decide";
import type { PodName } from "./environment";
import {
  hasProxyMark,
  isControlPlane,
  isDaemonSetPod,
  isInjected,
  type Pod,
  PROXY,
  type SkipReason,
  skipReason,
} from "./pod";
import type { PodLookup, Stanza } from "./stanza";

/** A pod as a runtime passes it to the plugin. */
export interface PassedPod {
  readonly pod: PodName;
  /** The pod's annotations; undefined if the runtime does not pass them. */
  readonly annotations: Readonly<Record<string, string>> | undefined;
  /** The pod's labels, which NRI passes and CNI does not. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** All inputs of a decision besides the stanza. */
export interface Evidence {
  readonly pod: Pod;
  readonly around: Surroundings;
}

/**
 * The reason to skip a pod without a look-up, if any. It applies even if the stanza has a problem: neither the pods
 * that repair the stanza nor pods without a proxy must wait for a correct one.
 */
export function skipWithoutLookup(
  { pod, annotations }: PassedPod,
  stanza: Pick<Stanza, "own-pods" | "pod-lookup">,
): SkipReason | undefined {
  const own = stanza["own-pods"];
  if (own !== undefined && isDaemonSetPod(pod, own)) return "own pod";
  const isUnmeshed = annotations !== undefined && !hasProxyMark(annotations);
  return isUnmeshed && stanza["pod-lookup"] !== "api" ? "no proxy" : undefined;
}

/**
 * The evidence from an injected pod's annotations, if they may replace the pod itself. An injected pod has a proxy, and
 * no linkerd-init in a cluster with this plugin. A meshed pod that Linkerd's injector did not inject may belong to the
 * control plane, which only its labels show, or have settings from its namespace.
 */
export function evidenceFromAnnotations(passed: PassedPod, policy: PodLookup): Evidence | undefined {
  const { pod, annotations, labels = {} } = passed;
  if (policy === "api" || annotations === undefined) return undefined;
  if (!isInjected(annotations) && !isControlPlane({ labels })) return undefined;
  return { pod: { ...pod, annotations, labels, containers: [PROXY], initContainers: [] }, around: {} };
}

/**
 * The object to look up besides a pod, if any. Settings of the control plane come from its chart, not from its
 * namespace; the injector copies a namespace's settings to its pods.
 */
export function extraLookup(pod: Pod): keyof Surroundings | undefined {
  if (skipReason(pod) !== undefined) return undefined;
  if (isControlPlane(pod)) return "apiServerPorts";
  return isInjected(pod.annotations) ? undefined : "namespace";
}
