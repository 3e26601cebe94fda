import type { EventSpec } from "../../kubernetes/events";
import type { OwnerReference } from "../../kubernetes/types";

/** The Events about pods. Each reason has a page in docs/runbooks. */

/** Reason and action equal those of linkerd's repair controller. */
export const deletedUnconfigured: EventSpec = {
  reason: "LinkerdCNINotConfigured",
  action: "Deleting",
  type: "Normal",
  note: "The pod started before its connections could be redirected to the proxy; deleted so that a new pod takes its place",
};

/** For a pod that no controller replaces. */
export const leftUnconfigured: EventSpec = {
  reason: "LinkerdCNINotConfigured",
  action: "Leaving",
  type: "Warning",
  note:
    "The pod started before its connections could be redirected to the proxy; it is not deleted because no controller " +
    "would bring it back: delete it and create it again",
};

/** For a pod ended by its validator: its controller sees a failed pod, as after any other failure. */
export const endedUnconfigured = (controller: OwnerReference | undefined): EventSpec => ({
  ...leftUnconfigured,
  note:
    "The pod started before its connections could be redirected to the proxy, and has ended; " +
    (controller === undefined
      ? "no controller brings it back: delete it and create it again"
      : `${controller.kind} ${controller.name} decides whether a new pod takes its place`),
});

export const notRedirected: EventSpec = {
  reason: "LinkerdCNINotRedirected",
  action: "Auditing",
  type: "Warning",
  note:
    "Connections to the pod bypass its proxy, and the pod has no validator; delete the pod, and create it again if no " +
    "controller does",
};

/** `ms` is how long the owner, such as "ReplicaSet web-5d8f", is suspended. */
export function suspended(owner: string, rounds: number, ms: number): EventSpec {
  return {
    reason: "LinkerdCNIRepairSuspended",
    action: "Suspending",
    type: "Warning",
    note:
      `Pods of ${owner} came back without redirect ${rounds} times; none of them is deleted for ` +
      `${Math.round(ms / 60_000)} min. See the log of container install-cni on this pod's node`,
  };
}
