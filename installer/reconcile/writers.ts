/** Agents known to write CNI configurations, and the remedy if one undoes our changes. */
const WRITERS: readonly (readonly [RegExp, string, string])[] = [
  [/cilium/, "cilium-agent", "set Cilium's cni.exclusive to false"],
  [/calico|canal/, "calico-node", "look at its container install-cni"],
  [/multus/, "multus", "let Multus delegate to the chained configuration, or use the Multus operator"],
  [/flannel|cbr0/, "kube-flannel", "look at its container install-cni"],
  [/weave/, "weave-net", "look at its launcher"],
  [/kindnet/, "kindnetd", "look at its DaemonSet"],
  [/aws-cni|aws-vpc/, "aws-node", "look at its DaemonSet"],
  [/azure/, "azure-cns", "look at its DaemonSet"],
  [/ovn/, "ovnkube-node", "look at its DaemonSet"],
  [/istio/, "istio-cni-node", "look at its DaemonSet"],
  [/gke|gcp|netd/, "netd", "look at its DaemonSet"],
];

/** The probable writer of a file, by its name and content. */
export function likelyWriter(name: string, text: string): { readonly writer: string; readonly remedy: string } {
  const found = WRITERS.find(([mark]) => mark.test(name)) ?? WRITERS.find(([mark]) => mark.test(text));
  if (found !== undefined) return { writer: found[1], remedy: found[2] };
  return { writer: "unknown", remedy: "find the agent that owns the file" };
}
