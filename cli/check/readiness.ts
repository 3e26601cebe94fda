import type { CheckedPod } from "./objects";

type Status = NonNullable<CheckedPod["status"]>;

const condition = ({ conditions = [] }: Status, wanted: string) => conditions.find(({ type }) => type === wanted);

/** Whether a pod serves now, and is not about to end. */
export function isReady({ metadata, status = {} }: CheckedPod): boolean {
  return metadata.deletionTimestamp === undefined && condition(status, "Ready")?.status === "True";
}

/** A DaemonSet's pod that has no node yet says for which one it was made. */
export function nodeOf({ spec }: CheckedPod): string {
  if (spec?.nodeName !== undefined) return spec.nodeName;
  const terms = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  const fields = terms.flatMap(({ matchFields }) => matchFields ?? []);
  return fields.find(({ key }) => key === "metadata.name")?.values?.[0] ?? "(none)";
}

function stoppedContainer({ initContainerStatuses = [], containerStatuses = [] }: Status): string | undefined {
  for (const { name, ready, state } of [...initContainerStatuses, ...containerStatuses]) {
    const stopped = state?.waiting ?? state?.terminated;
    if (stopped === undefined || ready === true) continue;
    const { reason = "stopped", message } = stopped;
    return `container ${name}: ${reason}${message === undefined ? "" : `: ${message}`}`;
  }
  return undefined;
}

/**
 * Why a pod is not ready, in its own words where it has any.
 * @param warning the last one in its log
 */
export function whyNotReady({ metadata, status = {} }: CheckedPod, warning: string | undefined): string {
  if (metadata.deletionTimestamp !== undefined) return "it is being deleted";
  const scheduled = condition(status, "PodScheduled");
  if (scheduled?.status === "False") return scheduled.message ?? "it has no node";
  const ready = condition(status, "Ready")?.message ?? "it has not said that it is";
  const words = stoppedContainer(status) ?? warning?.replace(/^linkerd-cni: \w+: /, "it says: ");
  return (words ?? ready).replaceAll("\n", " ");
}
