import { Annotation, Label, LinkerdContainer } from "./contract";

/** A pod, reduced to the fields for decisions. */
export interface Pod {
  readonly namespace: string;
  readonly name: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  /** Names of the containers, and of the init containers, in the pod's order. */
  readonly containers: readonly string[];
  readonly initContainers: readonly string[];
}

/** The name of the proxy's container, or of its init container if it is a native sidecar. */
export const PROXY = LinkerdContainer.proxy;

/** Why a pod's traffic is not redirected. */
export type SkipReason = "not a pod" | "own pod" | "no proxy" | "linkerd-init sets the rules" | "simulated";

/** The reason to skip a pod; undefined for a meshed pod that this plugin must redirect. */
export function skipReason(pod: Pod): SkipReason | undefined {
  if (!pod.containers.includes(PROXY) && !pod.initContainers.includes(PROXY)) return "no proxy";
  return pod.initContainers.includes(LinkerdContainer.init) ? "linkerd-init sets the rules" : undefined;
}

/** Whether a pod belongs to the control plane, which must reach the API server before its proxy runs. */
export function isControlPlane({ labels }: Pick<Pod, "labels">): boolean {
  return Boolean(labels[Label.controlPlaneComponent]);
}

const INJECTOR = "linkerd/proxy-injector";

type Annotations = Readonly<Record<string, string>>;

/** Whether Linkerd's injector injected the pod. It copies the namespace's settings: the pod's annotations are complete. */
export function isInjected(annotations: Annotations): boolean {
  return annotations[Annotation.createdBy]?.startsWith(INJECTOR) === true;
}

/** Whether a pod has the annotation of every injector; a pod without it has no proxy. */
export function hasProxyMark(annotations: Annotations): boolean {
  return Boolean(annotations[Annotation.proxyVersion]);
}

/** The alphabet of Kubernetes' generated suffixes. */
const GENERATED = /^-[bcdfghjklmnpqrstvwxz2456789]{5}$/;

/** Whether a pod belongs to a DaemonSet, judged only by its name. */
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
