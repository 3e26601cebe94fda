import { Store } from "../../kubernetes/store";
import type { OwnerReference, PodObject } from "../../kubernetes/types";
import type { Notice } from "../../kubernetes/watch";
import { type Diagnosis, diagnose, endedByValidator, restartedAfter } from "./diagnose";

/** Whether connections to a pod are redirected, as far as audits found out; `suspected`: one found that they are not. */
export type Redirect = "unknown" | "present" | "suspected" | "absent";

/** How long to wait for the NRI plugin, which sets a pod's redirect as soon as it runs. */
export const NRI_WAIT_MS = 60_000;

/** Runs of a pod's validator that have failed, as this controller saw them. */
interface Failures {
  readonly firstSeen: number;
  readonly lastSeen: number;
  /** When the last one ended, as the kubelet says: that tells it from the next. */
  readonly last: string;
}

/** The parts of a meshed pod of this node that are kept: one object for the pod's whole life. */
export interface TrackedPod {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** UID of the controller that replaces the pod; without one, the pod's namespace and name. */
  owner: string;
  controller: OwnerReference | undefined;
  /** The controller makes a new pod when this one is deleted. */
  isReplaced: boolean;
  /** An Event says that the pod is broken and left as it is. */
  reported: boolean;
  readonly firstSeen: number;
  diagnosis: Diagnosis;
  /** The failures of a validator that the kubelet starts again. */
  failures: Failures | undefined;
  /** The whole object, as long as an audit may need it. */
  object: PodObject | undefined;
  redirect: Redirect;
  /** When the next audit is due. */
  auditAt: number;
  /** The API server has deleted the pod; the watch has yet to say so. */
  deleted: boolean;
  /** Failed attempts to delete the pod. */
  attempts: number;
  /** The next attempt to delete the pod comes no earlier. */
  retryAt: number;
}

/** Bounds the memory: no node runs as many pods. */
const MAX_PODS = 5_000;

/** Callbacks of the store. */
export interface PodStoreOptions {
  /** Milliseconds of a clock that never goes back. */
  readonly now: () => number;
  /** A pod has changed, or is gone. */
  readonly changed: (uid: string) => void;
  /** The failed validator has ended a pod that was looked after. */
  readonly ended: (pod: TrackedPod) => void;
  /** A pod is not looked after, because there are too many. */
  readonly overflow: () => void;
}

const uidOf = ({ metadata }: PodObject): string => metadata?.uid ?? "";

/** Kinds whose controllers keep a number of pods. */
const REPLACING = ["ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job"];

/** An unknown controller probably replaces a pod that always restarts, but not one that runs to its end. */
const runsForever = ({ spec }: PodObject): boolean => (spec?.restartPolicy ?? "Always") === "Always";

/** The controller that replaces a pod. It may be deleted without its pods, and another one may adopt them. */
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
  const { namespace = "default", name = "" } = pod.metadata ?? {};
  return {
    uid: uidOf(pod),
    namespace,
    name,
    ...ownershipOf(pod),
    reported: false,
    firstSeen: now,
    diagnosis: "unknown",
    failures: undefined,
    object: undefined,
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
  tracked.object = tracked.diagnosis === "unvalidated" && tracked.redirect !== "present" ? pod : undefined;
  return tracked;
}

/** The meshed pods of this node by UID, without those that are leaving. */
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

  /** Takes in what the watch tells. */
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
