/** What is known about a pod, and what that decides: the same for the plugin and for whoever explains it. */
import { type Decision, decide, type Surroundings } from "./decide";
import type { PodName } from "./environment";
import type { JsonObject } from "./json";
import { ownPods } from "./parse-stanza";
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

type Texts = Readonly<Record<string, string>>;

/** A pod before anybody is asked about it. */
export interface PassedPod {
  readonly pod: PodName;
  /** The pod's annotations as the runtime passed them; undefined where it does not. */
  readonly annotations: Texts | undefined;
}

/** What was learned: everything to decide by, or already the reason to leave the pod alone. */
export type Learned =
  | { readonly kind: "pod"; readonly pod: Pod; readonly around: Surroundings; readonly because?: string }
  | { readonly kind: "skip"; readonly reason: SkipReason };

const isUnmeshed = (annotations: Texts | undefined, policy: unknown) =>
  policy !== "api" && annotations !== undefined && !hasProxyMark(annotations);

/**
 * The reason to leave a pod alone that is found before the stanza is read in full: a broken one keeps neither the pods
 * that mend it from starting nor those that are not meshed.
 */
export function passesAtOnce({ pod, annotations }: PassedPod, source: JsonObject): SkipReason | undefined {
  const own = ownPods(source);
  if (own !== undefined && isDaemonSetPod(pod, own)) return "own pod";
  return isUnmeshed(annotations, source["pod-lookup"]) ? "no proxy" : undefined;
}

/** A pod known only by annotations that an injector wrote: it has a proxy, and no linkerd-init where this plugin runs. */
export function podFromAnnotations({ pod, annotations = {} }: PassedPod): Pod {
  return { ...pod, annotations, labels: {}, containers: [PROXY], initContainers: [] };
}

/**
 * What the annotations alone decide, where the runtime passed them and the policy trusts them. A meshed pod that linkerd
 * did not inject may be one of the control plane's, which only its labels tell, or have settings from its namespace.
 */
export function knownFromAnnotations(passed: PassedPod, policy: PodLookup): Learned | undefined {
  if (passed.annotations === undefined || policy === "api") return undefined;
  if (isUnmeshed(passed.annotations, policy)) return { kind: "skip", reason: "no proxy" };
  const decide = policy === "annotations" && isInjected(passed.annotations);
  return decide ? { kind: "pod", pod: podFromAnnotations(passed), around: {} } : undefined;
}

/** What a pod's object says. */
export interface PodSource {
  readonly metadata?: { readonly annotations?: Texts; readonly labels?: Texts };
  readonly spec?: {
    readonly containers?: readonly { readonly name: string }[];
    readonly initContainers?: readonly { readonly name: string }[];
  };
}

/** A pod as the API server has it. */
export function podFromObject({ namespace, name }: PodName, { metadata, spec }: PodSource): Pod {
  return {
    namespace,
    name,
    annotations: metadata?.annotations ?? {},
    labels: metadata?.labels ?? {},
    containers: (spec?.containers ?? []).map((container) => container.name),
    initContainers: (spec?.initContainers ?? []).map((container) => container.name),
  };
}

/** The ports of the API server's service, and those behind it that are numbers; undefined where it says none. */
export function apiServerPorts(service: {
  readonly spec?: { readonly ports?: readonly { readonly port?: number; readonly targetPort?: number | string }[] };
}): readonly number[] | undefined {
  const found = (service.spec?.ports ?? []).flatMap(({ port, targetPort }) => [port, targetPort]);
  const numbers = found.filter((port): port is number => typeof port === "number");
  return numbers.length > 0 ? numbers : undefined;
}

/** What has to be read besides a pod: the control plane's settings come from its chart, not from its namespace. */
export function besides(pod: Pod): keyof Surroundings | undefined {
  if (skipReason(pod) !== undefined) return undefined;
  if (isControlPlane(pod)) return "apiServerPorts";
  return isInjected(pod.annotations) ? undefined : "namespace";
}

/**
 * What becomes of a pod.
 * @throws CniError 7 for a setting that cannot be understood
 */
export function settle(learned: Learned, stanza: Stanza): Decision {
  if (learned.kind === "skip") return learned;
  const decision = decide(learned.pod, learned.around, stanza);
  return decision.kind === "redirect" && stanza.linkerd.simulate ? { kind: "skip", reason: "simulated" } : decision;
}
