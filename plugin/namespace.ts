import { CniError, ErrorCode, reasonOf } from "../cni/errors";
import type { World } from "./call";
import type { FileId } from "./files/port";
import type { Kernel } from "./netlink/port";

const OWN = "/proc/self/ns/net";

/**
 * Makes sure that a call is about a namespace, and another than the plugin's own: rules there would redirect the whole
 * node.
 * @throws CniError 4
 */
export function requireOtherNamespace(netns: string, identify: World["identify"]): void {
  const own = identify(OWN);
  let given: FileId;
  try {
    given = identify(netns);
  } catch (error) {
    throw new CniError(ErrorCode.environment, `CNI_NETNS: ${reasonOf(error)}`);
  }
  if (given.device !== own.device) {
    throw new CniError(ErrorCode.environment, `CNI_NETNS ${netns} is not a network namespace`);
  }
  if (given.inode === own.inode) {
    throw new CniError(ErrorCode.environment, `CNI_NETNS ${netns} is the network namespace the plugin itself runs in`);
  }
}

/** @throws CniError 4 where it is gone by now, or a namespace of another kind */
function enter(kernel: Kernel, netns: string): void {
  try {
    kernel.enterNamespace(netns);
  } catch (error) {
    throw new CniError(ErrorCode.environment, `CNI_NETNS: ${reasonOf(error)}`, "", { cause: error });
  }
}

/**
 * Does work inside a namespace; the calling thread stays there.
 * @throws CniError 101 with what the kernel refused
 */
export function inNamespace<T>(world: World, netns: string, work: () => T): T {
  enter(world.kernel, netns);
  try {
    return work();
  } catch (error) {
    if (error instanceof CniError) throw error;
    throw new CniError(ErrorCode.rulesRefused, reasonOf(error), "", { cause: error });
  }
}
