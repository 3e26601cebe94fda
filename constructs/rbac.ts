import type { k8s } from "cdk8s-plus-27";
import { CNI_NAME } from "../cni/contract";
import { type Input, not, or, type Parts, type Refs, when } from "../helm/index";
import type { NodeTaint } from "./taint";
import type { Values } from "./values";

/** Permissions of the plugin, the installer and the repair controller in the cluster. */
export function roleRules(values: Refs<Values>, taint: NodeTaint): Parts<k8s.PolicyRule> {
  const { enabled: repair } = values.repairController;
  const { minimal } = values.rbac;
  const linkerds = { apiGroups: [""], resources: ["pods", "nodes", "namespaces", "services"] };
  return [
    when(not(minimal), { ...linkerds, verbs: ["list", "get", "watch"] }),
    // The plugin's look-ups.
    when(minimal, { apiGroups: [""], resources: ["pods", "namespaces"], verbs: ["get"] }),
    // The one in the namespace default: a role there would require permissions in it to install the chart.
    when(minimal, { apiGroups: [""], resources: ["services"], resourceNames: ["kubernetes"], verbs: ["get"] }),
    // It reads the node's container runtime, and when it stops, whether the DaemonSet still selects the node.
    when(minimal, { apiGroups: [""], resources: ["nodes"], verbs: ["get"] }),
    // A stopping installer asks whether its own DaemonSet is gone.
    { apiGroups: ["apps"], resources: ["daemonsets"], resourceNames: [CNI_NAME], verbs: ["get"] },
    ...taint.rules,
    when(repair, { apiGroups: [""], resources: ["pods"], verbs: ["delete", "list", "watch"] }),
    // Whether Linkerd's injector answers.
    when(repair, {
      apiGroups: ["admissionregistration.k8s.io"],
      resources: ["mutatingwebhookconfigurations"],
      verbs: ["list"],
    }),
    when(repair, { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["list"] }),
    when(or(repair, values.nri.enabled), {
      apiGroups: ["events.k8s.io"],
      resources: ["events"],
      verbs: ["create"],
    }),
  ];
}

/** Binds a role to a service account; by default both have the same name. */
export function binding(kind: "Role" | "ClusterRole", name: string, namespace: Input<string>, account = name) {
  return {
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind, name },
    subjects: [{ kind: "ServiceAccount", name: account, namespace }],
  };
}
