/** The stanza that linkerd's chart writes by default, without `policy`, which its plugin ignores. */
export const LINKERDS_STANZA = {
  name: "linkerd-cni",
  type: "linkerd-cni",
  log_level: "info",
  kubernetes: { kubeconfig: "__KUBECONFIG_FILEPATH__" },
  linkerd: {
    "incoming-proxy-port": 4143,
    "outgoing-proxy-port": 4140,
    "proxy-uid": 2102,
    "ports-to-redirect": [],
    "inbound-ports-to-ignore": ["4191", "4190"],
    simulate: false,
    "use-wait-flag": false,
    "iptables-mode": "nft",
    ipv6: false,
  },
};
