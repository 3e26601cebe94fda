import { Label } from "../../cni/contract";
import { Store } from "../../kubernetes/store";
import type { OwnerReference, PodObject } from "../../kubernetes/types";
import type { Notice } from "../../kubernetes/watch";
import { type AuditedPod, auditedPod } from "./audited-pod";
import { type Diagnosis, diagnose, endedByValidator, restartedAfter } from "./diagnose";

/** Whether connections to a pod are redirected, by audits; `suspected`: one audit found that they are not. */
export type Redirect = "unknown" | "present" | "suspected" | "absent";

/** The wait for the NRI plugin, which sets a pod's redirect as soon as it runs. */
export const NRI_WAIT_MS = 60_000;

/** Failed runs of a pod's validator that this controller has seen. */
interface Failures {
  readonly firstSeen: number;
  readonly lastSeen: number;
  /** When the last one ended according to the kubelet, which distinguishes it from the next. */
  readonly last: string;
}

/** The stored parts of a meshed pod of this node: one object for the pod's whole life. */
export interface TrackedPod {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** UID of the controller that replaces the pod; without one, the pod's namespace and name. */
  owner: string;
  controller: OwnerReference | undefined;
  /** The controller creates a new pod when this one is deleted. */
  isReplaced: boolean;
  /** An Event has reported that the pod is broken and stays. */
  reported: boolean;
  readonly firstSeen: number;
  /** It is of Linkerd's control plane, whose chart gives its pods their proxies. */
  readonly isControlPlane: boolean;
  diagnosis: Diagnosis;
  /** The failures of a validator that the kubelet restarts. */
  failures: Failures | undefined;
  /** As long as an audit may need it. */
  audited: AuditedPod | undefined;
  redirect: Redirect;
  /** When the next audit is due. */
  auditAt: number;
  /** The API server has deleted the pod, which the watch has not reported yet. */
  deleted: boolean;
  /** Failed attempts to delete the pod. */
  attempts: number;
  /** Earliest time of the next attempt to delete the pod. */
  retryAt: number;
}

/** Limits memory; nodes do not run that many pods. */
const MAX_PODS = 5_000;

/** Callbacks of the store. */
interface PodStoreOptions {
  /** Milliseconds of a monotonic clock. */
  readonly now: () => number;
  /** A pod has changed or was deleted. */
  readonly changed: (uid: string) => void;
  /** The failed validator has ended a tracked pod. */
  readonly ended: (pod: TrackedPod) => void;
  /** A pod is not tracked, because there are too many. */
  readonly overflow: () => void;
}

const uidOf = ({ metadata }: PodObject): string => metadata?.uid ?? "";

/** Kinds whose controllers keep a number of pods. */
const REPLACING = ["ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job"];

/** An unknown controller probably replaces a pod that always restarts, but not one that runs to its end. */
const runsForever = ({ spec }: PodObject): boolean => (spec?.restartPolicy ?? "Always") === "Always";

/** The controller that replaces a pod. It may be deleted without its pods, which another one may adopt. */
function ownershipOf(pod: PodObject): Pick<TrackedPod, "owner" | "controller" | "isReplaced"> {
  const { namespace = "default", name = "", ownerReferences = [] } = pod.metadata ?? {};
  const controller = ownerReferences.find((reference) => reference.controller === true);
  return {
    owner: controller?.uid ?? `${namespace}/${name}`,
    controller,
    isReplaced: controller !== undefined && (REPLACING.includes(controller.kind) || runsForever(pod)),
  };
}

function track(pod: PodObject, now: number): TrackedPod {
  const { namespace = "default", name = "", labels = {} } = pod.metadata ?? {};
  const isComponent = labels[Label.controlPlaneComponent] !== undefined;
  return {
    uid: uidOf(pod),
    namespace,
    name,
    ...ownershipOf(pod),
    reported: false,
    firstSeen: now,
    // A tenant that sets both labels has its own pods deleted first, and without a look at the injector.
    isControlPlane: isComponent && labels[Label.controlPlaneNamespace] === namespace,
    diagnosis: "unknown",
    failures: undefined,
    audited: undefined,
    redirect: "unknown",
    auditAt: now,
    deleted: false,
    attempts: 0,
    retryAt: now,
  };
}

function failuresOf(pod: PodObject, { diagnosis, failures }: TrackedPod, now: number): Failures | undefined {
  const last = diagnosis === "failed" ? restartedAfter(pod) : undefined;
  if (last === undefined) return undefined;
  if (last === failures?.last) return failures;
  return { firstSeen: failures?.firstSeen ?? now, lastSeen: now, last };
}

function update(tracked: TrackedPod, pod: PodObject, now: number): TrackedPod {
  Object.assign(tracked, ownershipOf(pod));
  tracked.diagnosis = diagnose(pod);
  tracked.failures = failuresOf(pod, tracked, now);
  if (tracked.diagnosis !== "unvalidated") tracked.redirect = "unknown";
  const isAudited = tracked.diagnosis === "unvalidated" && tracked.redirect !== "present";
  tracked.audited = isAudited ? auditedPod(pod) : undefined;
  return tracked;
}

/** The meshed pods of this node by UID, except those being deleted. */
export class PodStore {
  private readonly store: Store<PodObject, TrackedPod>;

  constructor(private readonly options: PodStoreOptions) {
    const { changed, now } = options;
    const view = (pod: PodObject) => update(this.get(uidOf(pod)) ?? track(pod, now()), pod, now());
    this.store = new Store({ key: uidOf, view, changed });
  }

  /** Whether all pods have been listed. */
  get synced(): boolean {
    return this.store.synced;
  }

  get(uid: string): TrackedPod | undefined {
    return this.store.get(uid);
  }

  values(): IterableIterator<TrackedPod> {
    return this.store.values();
  }

  count(condition: (pod: TrackedPod) => boolean): number {
    return [...this.store.values()].filter(condition).length;
  }

  /** Applies an event of the watch. */
  apply(notice: Notice<PodObject>): void {
    if (notice.type === "LISTING" || notice.type === "SYNCED" || notice.type === "DELETED") this.store.apply(notice);
    else if (diagnose(notice.object) === "leaving") this.leave(notice.object);
    else if (this.get(uidOf(notice.object)) === undefined && this.store.size >= MAX_PODS) this.options.overflow();
    else this.store.apply(notice);
  }

  private leave(object: PodObject): void {
    const pod = this.get(uidOf(object));
    const isDeleted = object.metadata?.deletionTimestamp !== undefined;
    if (pod !== undefined && !isDeleted && endedByValidator(object)) this.options.ended(pod);
    this.store.apply({ type: "DELETED", object });
  }
}
