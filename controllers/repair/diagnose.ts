import { Annotation, LinkerdContainer } from "../../cni/contract";
import type { ContainerStatus, PodObject } from "../../kubernetes/types";

/** The validator's exit code when connections are not redirected (EOPNOTSUPP). */
const NOT_REDIRECTED = 95;

/**
 * The state of a pod's redirect, by its status.
 * - `failed`: its validator found that connections are not redirected
 * - `passed`: its validator found that they are
 * - `unvalidated`: its proxy runs, and nothing in the pod has checked the redirect
 * - `unknown`: none of these yet
 * - `leaving`: the pod is being deleted, has ended, or is not the API server's to delete; this never changes again
 */
export type Diagnosis = "failed" | "passed" | "unvalidated" | "unknown" | "leaving";

const exitOf = (state: ContainerStatus["state"]) => state?.terminated?.exitCode;

const validatorOf = ({ status }: PodObject) =>
  status?.initContainerStatuses?.find(({ name }) => name === LinkerdContainer.validator);

/** When the validator last ended, if the kubelet restarts it: the pod's redirect can then be set in place. */
export function restartedAfter(pod: PodObject): string | undefined {
  const validator = validatorOf(pod);
  if (validator === undefined) return undefined;
  return (validator.state?.terminated ?? validator.lastState?.terminated)?.finishedAt;
}

/** When the pod's current sandbox was created. */
function sandboxSince(pod: PodObject): number {
  const ready = pod.status?.conditions?.find(({ type }) => type === "PodReadyToStartContainers");
  return ready?.status === "True" ? Date.parse(ready.lastTransitionTime ?? "") : Number.NaN;
}

/**
 * A restart of the node creates a new sandbox. The validator's last failure was in the old one and no longer counts.
 */
function isOfEarlierSandbox(pod: PodObject, { lastState }: ContainerStatus): boolean {
  return Date.parse(lastState?.terminated?.finishedAt ?? "") < sandboxSince(pod);
}

function hasFailed(pod: PodObject): boolean {
  const validator = validatorOf(pod);
  if (validator === undefined) return false;
  const exit = exitOf(validator.state);
  if (exit !== undefined) return exit === NOT_REDIRECTED;
  return exitOf(validator.lastState) === NOT_REDIRECTED && !isOfEarlierSandbox(pod, validator);
}

const hasPassed = (pod: PodObject): boolean => exitOf(validatorOf(pod)?.state) === 0;

function isUnvalidated({ spec, status }: PodObject): boolean {
  if (spec?.hostNetwork === true) return false;
  if (spec?.initContainers?.some(({ name }) => name === LinkerdContainer.validator || name === LinkerdContainer.init))
    return false;
  const statuses = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])];
  return statuses.some(
    ({ name, ready, state }) => name === LinkerdContainer.proxy && state?.running !== undefined && ready === true,
  );
}

/** The kubelet starts static pods from files. Deleting their mirror in the API changes nothing on the node. */
function isStatic({ metadata }: PodObject): boolean {
  return metadata?.annotations?.[Annotation.mirror] !== undefined;
}

/** Leave pods that have ended: their controllers have acted already, and users may read their logs. */
function hasEnded(pod: PodObject): boolean {
  const phase = pod.status?.phase;
  return phase === "Failed" || phase === "Succeeded" || endedByValidator(pod);
}

/** Whether the failed validator ends the pod; the kubelet reports it after a moment. */
export function endedByValidator(pod: PodObject): boolean {
  return pod.spec?.restartPolicy === "Never" && hasFailed(pod);
}

/** Judges a pod by its object alone. Pure: no I/O, no clock. */
export function diagnose(pod: PodObject): Diagnosis {
  if (pod.metadata?.deletionTimestamp !== undefined || isStatic(pod) || hasEnded(pod)) return "leaving";
  if (hasFailed(pod)) return "failed";
  if (hasPassed(pod)) return "passed";
  return isUnvalidated(pod) ? "unvalidated" : "unknown";
}
