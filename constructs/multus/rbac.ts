import { NAME as CNI } from "../linkerd-cni";
import { NAME, OWN_SECRET } from "./names";

/** What the operator may do in the whole cluster. */
export const CLUSTER_RULES = [
  { apiGroups: [""], resources: ["namespaces"], verbs: ["get", "list", "watch"] },
  {
    apiGroups: ["k8s.cni.cncf.io"],
    resources: ["network-attachment-definitions"],
    // Whoever writes others chooses what Multus runs on the nodes. Applying names what is created.
    resourceNames: [CNI],
    verbs: ["list", "watch", "create", "patch", "delete"],
  },
  {
    apiGroups: ["admissionregistration.k8s.io"],
    resources: ["mutatingwebhookconfigurations"],
    resourceNames: [NAME],
    verbs: ["get", "list", "watch", "patch"],
  },
  { apiGroups: ["events.k8s.io"], resources: ["events"], verbs: ["create"] },
];

/** What it may do in its own namespace. A rule about `create` cannot name what is created. */
export const OWN_RULES = [
  { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["create"] },
  {
    apiGroups: ["coordination.k8s.io"],
    resources: ["leases"],
    resourceNames: [NAME],
    verbs: ["get", "update"],
  },
  { apiGroups: [""], resources: ["secrets"], verbs: ["create"] },
  {
    apiGroups: [""],
    resources: ["secrets"],
    resourceNames: [OWN_SECRET],
    verbs: ["get", "list", "watch", "patch"],
  },
];

/** What it may do where the plugin's configuration is. */
export const CONFIGURATION_RULES = [
  { apiGroups: [""], resources: ["configmaps"], resourceNames: [`${CNI}-config`], verbs: ["get", "list", "watch"] },
];
