import { Open, openFile } from "../host/files";
import { CLONE_NEWNET, enterNamespace, OWN_NAMESPACE, openNamespace } from "../host/namespace";
import type { Host } from "../host/port";
import { hasLegacyNat } from "../netlink/legacy";
import { type NetfilterSocket, openNetfilter } from "../netlink/socket";

/** A pod's network namespace. */
export interface PodNetwork {
  readonly netfilter: NetfilterSocket;
  /** Whether legacy iptables has a nat table there. */
  readonly legacyNat: boolean;
}

/**
 * Enters a pod's network namespace, opens a netfilter socket, which stays there, and returns. A process that cannot
 * return exits at once, since it would serve its port and set rules in the pod. @throws an Error that names the path
 */
export function openPodNetwork(host: Host, path: string): PodNetwork {
  const pod = openNamespace(host, path);
  try {
    const own = openFile(host, OWN_NAMESPACE, Open.readOnly);
    try {
      enterNamespace(host, pod, path);
      try {
        const legacyNat = hasLegacyNat(host);
        return { netfilter: openNetfilter(host), legacyNat };
      } finally {
        if (host.setns(own, CLONE_NEWNET) < 0) host.exit(1);
      }
    } finally {
      host.close(own);
    }
  } finally {
    host.close(pod);
  }
}
