import { checked } from "../host/errno";
import { identify, Open, openFile, sameFile } from "../host/files";
import type { Host } from "../host/port";
import { hasLegacyNat } from "../netlink/legacy";
import { type NetfilterSocket, openNetfilter } from "../netlink/socket";

const OWN = "/proc/self/ns/net";
const CLONE_NEWNET = 0x40000000;

/** What is needed of a pod's network namespace. */
export interface PodNetwork {
  readonly netfilter: NetfilterSocket;
  /** Whether legacy iptables has rewritten addresses there. */
  readonly legacyNat: boolean;
}

/**
 * Enters a pod's network namespace, opens a socket to its netfilter, and comes back: the socket stays there. A process
 * that cannot come back ends at once, for it would serve its port, and set rules, in the pod.
 * @throws an Error that names the path
 */
export function openPodNetwork(host: Host, path: string): PodNetwork {
  const own = openFile(host, OWN, Open.readOnly);
  try {
    if (sameFile(identify(host, OWN), identify(host, path))) {
      throw new Error(`${path} is the network namespace that this process runs in`);
    }
    const pod = openFile(host, path, Open.readOnly);
    try {
      checked(`enter network namespace ${path}`, host.setns(pod, CLONE_NEWNET));
    } finally {
      host.close(pod);
    }
    try {
      const legacyNat = hasLegacyNat(host);
      return { netfilter: openNetfilter(host), legacyNat };
    } finally {
      if (host.setns(own, CLONE_NEWNET) < 0) host.exit(1);
    }
  } finally {
    host.close(own);
  }
}
