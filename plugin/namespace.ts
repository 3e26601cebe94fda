import { CniError, ErrorCode, reasonOf } from "../cni/errors";
import type { World } from "./call";

const OWN = "/proc/self/ns/net";

/**
 * Makes sure that a call is about another namespace than the plugin's own: rules there would redirect the whole node.
 * @throws CniError 4
 */
export function requireOtherNamespace(netns: string, identify: World["identify"]): void {
  let given: string;
  try {
    given = identify(netns);
  } catch (error) {
    throw new CniError(ErrorCode.environment, `CNI_NETNS: ${reasonOf(error)}`);
  }
  if (given === identify(OWN)) {
    throw new CniError(ErrorCode.environment, `CNI_NETNS ${netns} is the network namespace the plugin itself runs in`);
  }
}

/**
 * Does work inside a namespace; the calling thread stays there.
 * @throws CniError 101 with what the kernel refused
 */
export function inNamespace<T>(world: World, netns: string, work: () => T): T {
  try {
    world.kernel.enterNamespace(netns);
    return work();
  } catch (error) {
    if (error instanceof CniError) throw error;
    throw new CniError(ErrorCode.rulesRefused, reasonOf(error), "", { cause: error });
  }
}
