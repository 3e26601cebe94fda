import { Annotation, Label, LinkerdContainer } from "./contract";

/** A pod, reduced to what decides about it. */
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

/** The reason to leave a pod alone; undefined for a meshed pod that this plugin has to redirect. */
export function skipReason(pod: Pod): SkipReason | undefined {
  if (!pod.containers.includes(PROXY) && !pod.initContainers.includes(PROXY)) return "no proxy";
  return pod.initContainers.includes(LinkerdContainer.init) ? "linkerd-init sets the rules" : undefined;
}

/** Whether a pod is one of the control plane's, which has to reach the API server before its proxy is up. */
export function isControlPlane({ labels }: Pick<Pod, "labels">): boolean {
  return Boolean(labels[Label.controlPlaneComponent]);
}

const INJECTOR = "linkerd/proxy-injector";

type Annotations = Readonly<Record<string, string>>;

/** Whether Linkerd's injector injected the pod. It copies the namespace's settings: the pod's annotations are complete. */
export function isInjected(annotations: Annotations): boolean {
  return annotations[Annotation.createdBy]?.startsWith(INJECTOR) === true;
}

/** Whether a pod has the mark that every injector leaves; one without it has no proxy. */
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
