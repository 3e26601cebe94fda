import { Annotation, Label, LinkerdContainer } from "./contract";

/** What decides about a pod, whatever it was learned from. */
export interface Pod {
  readonly namespace: string;
  readonly name: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  /** Names of the containers, and of the init containers, in the pod's order. */
  readonly containers: readonly string[];
  readonly initContainers: readonly string[];
}

/** The name of the proxy's container, or of its init container where it is a native sidecar. */
export const PROXY = LinkerdContainer.proxy;

/** Why a pod's traffic is left alone. */
export type SkipReason = "not a pod" | "own pod" | "no proxy" | "linkerd-init sets the rules" | "simulated";

/** The reason to leave a pod alone, or none: it is meshed and ours to redirect. */
export function skipReason(pod: Pod): SkipReason | undefined {
  if (!pod.containers.includes(PROXY) && !pod.initContainers.includes(PROXY)) return "no proxy";
  return pod.initContainers.includes(LinkerdContainer.init) ? "linkerd-init sets the rules" : undefined;
}

/** A pod of the mesh's own control plane, which has to reach the API server before its proxy is up. */
export function isControlPlane({ labels }: Pick<Pod, "labels">): boolean {
  return Boolean(labels[Label.controlPlaneComponent]);
}

const INJECTOR = "linkerd/proxy-injector";

type Annotations = Readonly<Record<string, string>>;

/** The injector copied the namespace's settings onto the pod: its own annotations say everything. */
export function isInjected(annotations: Annotations): boolean {
  return annotations[Annotation.createdBy]?.startsWith(INJECTOR) === true;
}

/** Every injector leaves this mark, so a pod without it has no proxy. */
export function hasProxyMark(annotations: Annotations): boolean {
  return Boolean(annotations[Annotation.proxyVersion]);
}

/** The alphabet Kubernetes takes generated suffixes from. */
const GENERATED = /^-[bcdfghjklmnpqrstvwxz2456789]{5}$/;

/** Whether a pod is one of a DaemonSet's, judged by its name alone. */
export function isDaemonSetPod(
  pod: { readonly namespace: string; readonly name: string },
  owner: { readonly namespace: string; readonly daemonset: string },
): boolean {
  return (
    pod.namespace === owner.namespace &&
    pod.name.startsWith(owner.daemonset) &&
    GENERATED.test(pod.name.slice(owner.daemonset.length))
  );
}
