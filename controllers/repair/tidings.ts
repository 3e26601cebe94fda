import type { Tiding } from "../events";

/** What is told about pods. Each reason has a page in docs/runbooks. */

const minutes = (ms: number) => `${Math.round(ms / 60_000)} min`;

/** Reason and action are those of linkerd's own repair controller. */
export const deletedUnconfigured: Tiding = {
  reason: "LinkerdCNINotConfigured",
  action: "Deleting",
  type: "Normal",
  note: "The pod started before its connections could be redirected to the proxy; deleted, so that it starts anew",
};

export const deletedUnvalidated: Tiding = {
  reason: "LinkerdCNINotRedirected",
  action: "Deleting",
  type: "Normal",
  note: "Connections to the pod bypass its proxy, and no container of it checks that; evicted, so that it starts anew",
};

export const notRedirected: Tiding = {
  reason: "LinkerdCNINotRedirected",
  action: "Auditing",
  type: "Warning",
  note:
    "Connections to the pod bypass its proxy, and no container of it checks that; delete the pod, or let the repair " +
    "controller do so (repairController.deleteUnvalidated)",
};

export const notReplaced: Tiding = {
  ...notRedirected,
  note:
    "Connections to the pod bypass its proxy, and no container of it checks that; it is not evicted, since no " +
    "controller would bring it back: delete it and create it anew",
};

export function suspended(rounds: number, waitMs: number, owner: string): Tiding {
  return {
    reason: "LinkerdCNIRepairSuspended",
    action: "Suspending",
    type: "Warning",
    note:
      `Pods of ${owner} came back without redirect ${rounds} times; none is deleted for ${minutes(waitMs)}. ` +
      "See the log of container install-cni on this pod's node",
  };
}
