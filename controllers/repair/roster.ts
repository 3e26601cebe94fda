import type { Notice } from "../../kubernetes/watch";
import { type Diagnosis, diagnose } from "./diagnose";
import { controllerOf, type OwnerReference, type Pod } from "./pod";

/** Whether connections to a pod are redirected, as far as it was asked. */
export type Redirect = "unknown" | "present" | "absent";

/** A meshed pod of this node that is not over. */
export interface Ward {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** What brings it back when it is deleted, so that its pods are counted together. */
  readonly owner: string;
  readonly controller?: OwnerReference;
  readonly firstSeen: number;
  /** By the API server's clock; milliseconds since 1970. */
  readonly created: number;
  diagnosis: Diagnosis;
  /** Its object, while an audit may have to look at it. */
  pod: Pod | undefined;
  redirect: Redirect;
  /** It was deleted and is on its way out. */
  deleted: boolean;
  /** Failed attempts to delete it, and when to try again. */
  attempts: number;
  retryAt: number;
  auditAt: number;
}

/** No node runs as many pods; whatever else may happen, memory stays bounded. */
const MOST_WARDS = 5_000;

function wardOf(uid: string, pod: Pod, now: number): Ward {
  const { namespace = "default", name = "", creationTimestamp = "" } = pod.metadata ?? {};
  const controller = controllerOf(pod);
  return {
    uid,
    namespace,
    name,
    owner: controller?.uid ?? `${namespace}/${name}`,
    ...(controller === undefined ? {} : { controller }),
    firstSeen: now,
    created: Date.parse(creationTimestamp),
    diagnosis: "fine",
    pod: undefined,
    redirect: "unknown",
    deleted: false,
    attempts: 0,
    retryAt: now,
    auditAt: now,
  };
}

/** The meshed pods of this node that are not over, kept up to date by a watch's notices. */
export class Roster {
  private readonly wards = new Map<string, Ward>();
  /** Those a list under way has not shown yet. */
  private missing = new Set<string>();
  private listed = false;

  constructor(
    private readonly now: () => number,
    private readonly overflow: () => void,
  ) {}

  /** Whether a first list has been read. */
  get complete(): boolean {
    return this.listed;
  }

  all(): IterableIterator<Ward> {
    return this.wards.values();
  }

  find(uid: string): Ward | undefined {
    return this.wards.get(uid);
  }

  count(condition: (ward: Ward) => boolean): number {
    return [...this.wards.values()].filter(condition).length;
  }

  forget(uid: string): void {
    const ward = this.wards.get(uid);
    // Nor is it to be audited by who has it at hand.
    if (ward !== undefined) ward.pod = undefined;
    this.wards.delete(uid);
  }

  apply(notice: Notice<Pod>): void {
    if (notice.type === "LISTING") this.missing = new Set(this.wards.keys());
    else if (notice.type === "SYNCED") this.sweep();
    else if (notice.type === "DELETED") this.forget(notice.object.metadata?.uid ?? "");
    else this.keep(notice.object);
  }

  private sweep(): void {
    for (const uid of this.missing) this.forget(uid);
    this.missing.clear();
    this.listed = true;
  }

  private keep(pod: Pod): void {
    const uid = pod.metadata?.uid ?? "";
    this.missing.delete(uid);
    const diagnosis = diagnose(pod);
    if (diagnosis === "leaving") {
      this.forget(uid);
      return;
    }
    const ward = this.wards.get(uid) ?? this.admit(uid, pod);
    if (ward === undefined) return;
    ward.diagnosis = diagnosis;
    ward.pod = ward.diagnosis === "unvalidated" && ward.redirect === "unknown" ? pod : undefined;
    if (ward.diagnosis !== "unvalidated") ward.redirect = "unknown";
  }

  private admit(uid: string, pod: Pod): Ward | undefined {
    if (this.wards.size >= MOST_WARDS) {
      this.overflow();
      return undefined;
    }
    const ward = wardOf(uid, pod, this.now());
    this.wards.set(uid, ward);
    return ward;
  }
}
