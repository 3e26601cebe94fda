/** The configuration that the cluster's own CNI plugin has put on the node before ours comes. */
export interface Primary {
  readonly config: object;
  /** Script to install as plugin `demo-veth`; absent if the reference plugins are used. */
  readonly executable?: string;
}

/** Our own stand-in: a veth pair a pod. */
export function demoPrimary(executable: string, ipv6: boolean): Primary {
  return {
    config: {
      cniVersion: "1.0.0",
      name: "cluster",
      plugins: [{ type: "demo-veth", prefix4: "10.98.0", ...(ipv6 ? { prefix6: "fd98" } : {}) }],
    },
    executable,
  };
}

/** The CNI project's bridge and host-local. `state` is a directory for the addresses handed out. */
export function referencePrimary(state: string, ipv6: boolean): Primary {
  const ranges = [[{ subnet: "10.98.0.0/24" }], ...(ipv6 ? [[{ subnet: "fd98::/64" }]] : [])];
  const routes = [{ dst: "0.0.0.0/0" }, ...(ipv6 ? [{ dst: "::/0" }] : [])];
  return {
    config: {
      cniVersion: "1.0.0",
      name: "cluster",
      plugins: [
        {
          type: "bridge",
          bridge: "cni0",
          isGateway: true,
          ipam: { type: "host-local", dataDir: state, ranges, routes },
        },
      ],
    },
  };
}
