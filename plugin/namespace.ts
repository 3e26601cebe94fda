import { CniError, ErrorCode, reasonOf } from "../cni/errors";
import { enterNamespace, openNamespace } from "../host/namespace";
import type { Host } from "../host/port";
import type { Call } from "./call";

function environmentError(error: unknown): CniError {
  return new CniError(ErrorCode.environment, `CNI_NETNS: ${reasonOf(error)}`, "", { cause: error });
}

/** Opens the network namespace in CNI_NETNS. @throws CniError 4 if it is not one, or is the plugin's own */
export function openTarget(host: Host, netns: string): number {
  try {
    return openNamespace(host, netns);
  } catch (error) {
    throw environmentError(error);
  }
}

/**
 * Runs a function in the pod's network namespace. The process stays there.
 * @throws CniError 4 if it is a namespace of another kind; 101 if the kernel refuses it
 */
export function inNamespace<T>({ host, target, namespace }: Call, work: () => T): T {
  try {
    enterNamespace(host, namespace, target.netns);
  } catch (error) {
    throw environmentError(error);
  }
  try {
    return work();
  } catch (error) {
    if (error instanceof CniError) throw error;
    throw new CniError(ErrorCode.rulesRefused, reasonOf(error), "", { cause: error });
  }
}
