import type { ContainerStatus, Pod } from "./pod";

/** Every meshed pod has it, whatever injected the proxy. */
export const MESHED_LABEL = "linkerd.io/control-plane-ns";

const VALIDATOR = "linkerd-network-validator";
const PROXY = "linkerd-proxy";
const INIT = "linkerd-init";
/** The validator's exit code where connections are not redirected (EOPNOTSUPP). */
const NOT_REDIRECTED = 95;

/**
 * What a pod's own status says about its redirect.
 * - `failed`: its validator found connections that were not redirected
 * - `unvalidated`: its proxy runs, and nothing in it has checked the redirect
 * - `fine`: neither, or not yet
 * - `leaving`: it is being deleted, has ended, or is not the API server's to delete; none of that ever changes
 */
export type Diagnosis = "failed" | "unvalidated" | "fine" | "leaving";

const exitOf = (state: ContainerStatus["state"]) => state?.terminated?.exitCode;

/** When the pod's present sandbox was made; earlier failures are those of a sandbox before it. */
function sandboxSince(pod: Pod): number {
  const ready = pod.status?.conditions?.find(({ type }) => type === "PodReadyToStartContainers");
  return ready?.status === "True" ? Date.parse(ready.lastTransitionTime ?? "") : Number.NaN;
}

/** A sandbox is made anew when the node restarts, and then the validator's last failure says nothing any more. */
function isOfEarlierSandbox(pod: Pod, { lastState }: ContainerStatus): boolean {
  return Date.parse(lastState?.terminated?.finishedAt ?? "") < sandboxSince(pod);
}

const validatorOf = ({ status }: Pod) => status?.initContainerStatuses?.find(({ name }) => name === VALIDATOR);

/** Whether its validator found its connections redirected. */
export const hasPassed = (pod: Pod): boolean => exitOf(validatorOf(pod)?.state) === 0;

function hasFailed(pod: Pod): boolean {
  const validator = validatorOf(pod);
  if (validator === undefined) return false;
  const exit = exitOf(validator.state);
  if (exit !== undefined) return exit === NOT_REDIRECTED;
  return exitOf(validator.lastState) === NOT_REDIRECTED && !isOfEarlierSandbox(pod, validator);
}

function isUnvalidated({ spec, status }: Pod): boolean {
  if (spec?.hostNetwork === true) return false;
  if (spec?.initContainers?.some(({ name }) => name === VALIDATOR || name === INIT)) return false;
  const statuses = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])];
  return statuses.some(({ name, ready, state }) => name === PROXY && state?.running !== undefined && ready === true);
}

/** The kubelet's own pods come from files of the node: to delete their images in the API would change nothing. */
function isStatic({ metadata }: Pod): boolean {
  return metadata?.annotations?.["kubernetes.io/config.mirror"] !== undefined;
}

/** Ended pods are replaced by their controllers, except where the failed validator is what ended them. */
function hasEnded(pod: Pod): boolean {
  const { spec, status } = pod;
  if (status?.phase === "Failed") return spec?.restartPolicy !== "Never" || !hasFailed(pod);
  return status?.phase === "Succeeded";
}

/** Judges a pod by its object alone. Pure: no I/O, no clock. */
export function diagnose(pod: Pod): Diagnosis {
  if (pod.metadata?.deletionTimestamp !== undefined || isStatic(pod) || hasEnded(pod)) return "leaving";
  if (hasFailed(pod)) return "failed";
  return isUnvalidated(pod) ? "unvalidated" : "fine";
}
