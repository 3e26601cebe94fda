import { INSTALLER } from "./names";
import type { CheckedPod } from "./objects";

type Status = NonNullable<CheckedPod["status"]>;

const condition = ({ conditions = [] }: Status, wanted: string) => conditions.find(({ type }) => type === wanted);

/** Whether a pod serves now, and is not about to end. */
export function isReady({ metadata, status = {} }: CheckedPod): boolean {
  return metadata.deletionTimestamp === undefined && condition(status, "Ready")?.status === "True";
}

/** The container that keeps a pod from being ready; the installer where the pod does not say. */
export function unreadyContainer({ status = {} }: CheckedPod): string {
  const all = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])];
  return all.find(({ ready }) => ready !== true)?.name ?? INSTALLER;
}

/**
 * What a log says of the installer itself, of which what keeps it from being ready is an error; undefined where it says
 * nothing. What the plugin said, it only passes on.
 */
export function lastTrouble(log: string): string | undefined {
  const lines = log.split("\n").filter((line) => /^linkerd-cni: (?:warn|error): (?!plugin: )/.test(line));
  return lines.findLast((line) => line.startsWith("linkerd-cni: error: ")) ?? lines.at(-1);
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
 * @param warning what the installer's log says, where that is what ails the pod
 */
export function whyNotReady(pod: CheckedPod, warning: string | undefined): string {
  const { metadata, status = {} } = pod;
  if (metadata.deletionTimestamp !== undefined) return "it is being deleted";
  const scheduled = condition(status, "PodScheduled");
  if (scheduled?.status === "False") return scheduled.message ?? "it has no node";
  const ready = condition(status, "Ready")?.message ?? "it has not said that it is";
  const said = unreadyContainer(pod) === INSTALLER ? warning?.replace(/^linkerd-cni: \w+: /, "it says: ") : undefined;
  const words = stoppedContainer(status) ?? said;
  return (words ?? ready).replaceAll("\n", " ");
}
