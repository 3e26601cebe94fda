/** Network namespaces of pods: the entered namespace is the checked one, even if its path changes meanwhile. */
import { shortened } from "../cni/errors";
import { checked } from "./errno";
import { identify, identifyOpen, Open, openFile } from "./files";
import type { Host } from "./port";

/** The process's network namespace. */
export const OWN_NAMESPACE = "/proc/self/ns/net";
export const CLONE_NEWNET = 0x40000000;

/**
 * Opens a network namespace other than the process's own, where rules would redirect the whole node. A path to a pipe
 * or a device does not block. @throws an Error that names the path
 */
export function openNamespace(host: Host, path: string): number {
  const descriptor = openFile(host, path, Open.readOnly | Open.nonBlocking);
  try {
    const own = identify(host, OWN_NAMESPACE);
    const { device, inode } = identifyOpen(host, descriptor);
    if (device !== own.device) throw new Error(`${shortened(path)} is not a network namespace`);
    if (inode === own.inode) throw new Error(`${shortened(path)} is the network namespace that this process runs in`);
    return descriptor;
  } catch (error) {
    host.close(descriptor);
    throw error;
  }
}

/** Enters an open namespace. @throws SystemError with the path, if it is of another kind */
export function enterNamespace(host: Host, descriptor: number, path: string): void {
  checked(`enter network namespace ${shortened(path)}`, host.setns(descriptor, CLONE_NEWNET));
}
