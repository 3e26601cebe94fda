/** Name and addresses of the one node, all of them inside the machine's own network namespace. */
export const NODE = { name: "node", address: "10.111.0.1", bridge: "node0", podBridge: "pods0" } as const;
export const POD_NETWORK = "10.244.0.0/24";
export const SERVICE_NETWORK = "10.96.0.0/16";
/** The address of Service default/kubernetes: the first of the service network. */
export const API_SERVICE = "10.96.0.1";
/** Name server of pods; it answers only where a suite starts services. */
export const DNS_SERVICE = "10.96.0.10";
export const API_PORT = 6443;
