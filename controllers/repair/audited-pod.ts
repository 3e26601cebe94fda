import { reducedObject } from "../../cni/api-objects";
import type { PodObject } from "../../kubernetes/types";

/** What an audit reads of a pod: a whole one may have many kilobytes. */
export interface AuditedPod {
  /** For `podFromObject`. */
  readonly object: object;
  /** Its address; empty if it has none. */
  readonly host: string;
  /** The ports that its containers declare. */
  readonly declared: readonly number[];
}

export function auditedPod({ metadata, spec, status }: PodObject): AuditedPod {
  const containers = [...(spec?.containers ?? []), ...(spec?.initContainers ?? [])];
  return {
    // Items of a list have no kind.
    object: reducedObject({ kind: "Pod", metadata, spec }),
    host: status?.podIP ?? "",
    declared: containers.flatMap(({ ports }) => ports ?? []).flatMap(({ containerPort }) => containerPort ?? []),
  };
}
