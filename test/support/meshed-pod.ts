/** Meshed pods, as the API server has them. */
import type { PodLike } from "./pods-api";

export const NODE = "node-1";

let made = 0;

type Changes = { readonly [Key in keyof PodLike]?: Partial<PodLike[Key]> };

/** A new pod of the node that is starting; of a ReplicaSet unless told otherwise. */
export function meshedPod(name: string, changes: Changes = {}): PodLike {
  made += 1;
  return {
    metadata: {
      name,
      namespace: "shop",
      uid: `uid-${made}`,
      labels: { "linkerd.io/control-plane-ns": "linkerd" },
      ...ownedBy(name),
      ...changes.metadata,
    },
    spec: {
      nodeName: NODE,
      restartPolicy: "Always",
      initContainers: [{ name: "linkerd-network-validator" }],
      containers: [{ name: "linkerd-proxy" }, { name: "app" }],
      ...changes.spec,
    },
    status: { phase: "Pending", ...changes.status },
  };
}

/** Owner of the pods of a ReplicaSet, or of another kind. */
export const ownedBy = (name: string, kind = "ReplicaSet") => ({
  ownerReferences: [{ apiVersion: "apps/v1", kind, name, uid: `rs-${name}`, controller: true }],
});

const validator = (status: object) => ({ initContainerStatuses: [{ name: "linkerd-network-validator", ...status }] });
const exited = (exitCode: number) => ({ terminated: { exitCode } });

/** The validator has failed and waits for its next start. */
export const failing = validator({ state: { waiting: { reason: "CrashLoopBackOff" } }, lastState: exited(95) });
/** The validator has passed. */
export const passed = validator({ state: exited(0) });
/** No controller replaces such a pod. */
export const bare = { ownerReferences: [] };
/** The validator's failure has ended the pod of a Job. */
export const ended = { phase: "Failed", ...validator({ state: exited(95) }) };
/** A proxy that runs. */
export const running = {
  phase: "Running",
  podIP: "127.0.0.1",
  containerStatuses: [{ name: "linkerd-proxy", ready: true, state: { running: {} } }],
};
