import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Progress } from "../../build/progress";
import { DNS_SERVICE, NODE } from "./addresses";
import { buildCoreDns } from "./binaries";
import { kubeconfig } from "./certificates";
import { startDaemon } from "./cluster";
import { paths } from "./paths";
import type { TestCluster } from "./suite";

const COREFILE = join(paths.state, "Corefile");
const corefile = `.:53 {
  bind ${NODE.address}
  errors
  kubernetes cluster.local {
    kubeconfig ${kubeconfig("admin")}
  }
}
`;

const metadata = { name: "kube-dns", namespace: "kube-system" };
const ports = ["UDP", "TCP"].map((protocol) => ({ name: protocol.toLowerCase(), port: 53, protocol }));
const DNS = [
  { apiVersion: "v1", kind: "Service", metadata, spec: { clusterIP: DNS_SERVICE, ports } },
  {
    apiVersion: "discovery.k8s.io/v1",
    kind: "EndpointSlice",
    metadata: { ...metadata, labels: { "kubernetes.io/service-name": metadata.name } },
    addressType: "IPv4",
    endpoints: [{ addresses: [NODE.address] }],
    ports,
  },
];

const KUBE_PROXY = [
  "kube-proxy",
  `--kubeconfig=${kubeconfig("admin")}`,
  `--hostname-override=${NODE.name}`,
  "--proxy-mode=nftables",
  // Pods reach each other over the bridge alone: without this an answer would not pass the node, which has the address to restore.
  "--masquerade-all",
  // These settings are the host's.
  "--conntrack-max-per-core=0",
  "--conntrack-tcp-timeout-established=0s",
  "--conntrack-tcp-timeout-close-wait=0s",
];

/** Gives the cluster service addresses and names, which no other suite needs: kube-proxy and CoreDNS run on the node. */
export async function startServices({ kubectl, machine }: TestCluster): Promise<void> {
  const coredns = await buildCoreDns(new Progress(process.stdout));
  await kubectl.apply(...DNS);
  await writeFile(COREFILE, corefile);
  await startDaemon(machine, { name: "coredns", command: [coredns, "-conf", COREFILE] });
  await startDaemon(machine, { name: "kube-proxy", command: KUBE_PROXY });
}
