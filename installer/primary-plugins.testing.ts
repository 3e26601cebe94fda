import { writeFileSync } from "node:fs";
import { join } from "node:path";

/** Executables of the CNI project and of primary CNIs. */
export const PRIMARY_PLUGINS: readonly string[] = [
  ...["bandwidth", "bridge", "firewall", "host-local", "loopback", "macvlan", "portmap", "ptp", "sbr", "tuning"],
  ...["antrea", "aws-cni", "azure-vnet", "calico", "cilium-cni", "egress-cni", "flannel", "gke-bpf-veth", "istio-cni"],
  ...["k8s", "multus", "multus-shim", "ovn-k8s-cni-overlay", "passthru", "weave-net"],
];

/** Puts empty files in their place. */
export function writePrimaryPlugins(binDir: string): void {
  for (const name of PRIMARY_PLUGINS) writeFileSync(join(binDir, name), "", { mode: 0o755 });
}
