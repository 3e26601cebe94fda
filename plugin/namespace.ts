import { CniError, ErrorCode, reasonOf, shortened } from "../cni/errors";
import { checked } from "../host/errno";
import { type FileId, identify, Open, openFile } from "../host/files";
import type { Host } from "../host/port";

const OWN = "/proc/self/ns/net";
const CLONE_NEWNET = 0x40000000;

/**
 * Checks that CNI_NETNS is a network namespace, and not the plugin's own: rules there would redirect the whole node.
 * @throws CniError 4
 */
export function requireOtherNamespace(host: Host, netns: string): void {
  const own = identify(host, OWN);
  let given: FileId;
  try {
    given = identify(host, netns);
  } catch (error) {
    throw new CniError(ErrorCode.environment, `CNI_NETNS: ${reasonOf(error)}`);
  }
  if (given.device !== own.device) {
    throw new CniError(ErrorCode.environment, `CNI_NETNS ${shortened(netns)} is not a network namespace`);
  }
  if (given.inode === own.inode) {
    throw new CniError(
      ErrorCode.environment,
      `CNI_NETNS ${shortened(netns)} is the network namespace the plugin itself runs in`,
    );
  }
}

/** @throws CniError 4 where it no longer exists, or is a namespace of another kind */
function enter(host: Host, netns: string): void {
  try {
    const descriptor = openFile(host, netns, Open.readOnly);
    checked(`enter network namespace ${netns}`, host.setns(descriptor, CLONE_NEWNET));
    host.close(descriptor);
  } catch (error) {
    throw new CniError(ErrorCode.environment, `CNI_NETNS: ${reasonOf(error)}`, "", { cause: error });
  }
}

/**
 * Does work in a namespace. The process stays there.
 * @throws CniError 101 with what the kernel refused
 */
export function inNamespace<T>(host: Host, netns: string, work: () => T): T {
  enter(host, netns);
  try {
    return work();
  } catch (error) {
    if (error instanceof CniError) throw error;
    throw new CniError(ErrorCode.rulesRefused, reasonOf(error), "", { cause: error });
  }
}
