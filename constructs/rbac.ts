import type { k8s } from "cdk8s-plus-27";
import { and, type Input, not, or, type Parts, type Refs, when } from "../helm/index";
import type { Feature } from "./feature";
import { pluginRules } from "./plugin-token";
import type { Values } from "./props";

/** What the plugin, the installer and the repair controller may do in the cluster. */
export function roleRules(
  values: Refs<Values>,
  daemonSet: string,
  features: readonly Feature[],
): Parts<k8s.PolicyRule> {
  const { enabled: repair, deleteUnvalidated } = values.repairController;
  const { minimal } = values.rbac;
  const linkerds = { apiGroups: [""], resources: ["pods", "nodes", "namespaces", "services"] };
  return [
    when(not(minimal), { ...linkerds, verbs: ["list", "get", "watch"] }),
    // The plugin has the installer's token where it gets none of its own.
    ...pluginRules.map((rule) => when(minimal, rule)),
    // It asks what container runtime its node has, and in the end whether the DaemonSet still wants that node.
    when(minimal, { apiGroups: [""], resources: ["nodes"], verbs: ["get"] }),
    // A stopping installer asks whether its own DaemonSet is gone.
    { apiGroups: ["apps"], resources: ["daemonsets"], resourceNames: [daemonSet], verbs: ["get"] },
    ...features.flatMap(({ rules }) => rules),
    when(repair, { apiGroups: [""], resources: ["pods"], verbs: ["delete", "list", "watch"] }),
    // Pods that serve go by way of their PodDisruptionBudgets.
    when(and(repair, deleteUnvalidated), { apiGroups: [""], resources: ["pods/eviction"], verbs: ["create"] }),
    when(or(repair, values.podEvents, values.nri.enabled), {
      apiGroups: ["events.k8s.io"],
      resources: ["events"],
      verbs: ["create"],
    }),
  ];
}

/** What binds a role to a service account; both have the same name unless told otherwise. */
export function binding(kind: "Role" | "ClusterRole", name: string, namespace: Input<string>, account = name) {
  return {
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind, name },
    subjects: [{ kind: "ServiceAccount", name: account, namespace }],
  };
}
