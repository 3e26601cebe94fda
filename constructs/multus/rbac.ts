import type { k8s } from "cdk8s-plus-27";
import { CONFIG_MAP, MULTUS_NAME, NetworkDefinition, WEBHOOK_SECRET } from "../../cni/contract";
import { not, or, type Refs, type Templated, when } from "../../helm/index";
import { isIssued } from "./pod";
import type { MultusValues } from "./values";

type Rules = readonly (Templated<k8s.PolicyRule> | undefined)[];

/** Permissions of the operator in the whole cluster. */
export function clusterRules(values: Refs<MultusValues>): Rules {
  return [
    { apiGroups: [""], resources: ["namespaces"], verbs: ["get", "list", "watch"] },
    {
      apiGroups: [NetworkDefinition.group],
      resources: ["network-attachment-definitions"],
      // Write access to other definitions would decide what Multus runs on the nodes. Server-side apply names the
      // created object.
      resourceNames: [NetworkDefinition.name],
      verbs: ["get", "list", "watch", "create", "patch", "delete"],
    },
    // Write access to it can change every pod: with cert-manager, the operator does not write the caBundle.
    when(not(isIssued(values)), {
      apiGroups: ["admissionregistration.k8s.io"],
      resources: ["mutatingwebhookconfigurations"],
      resourceNames: [MULTUS_NAME],
      verbs: ["get", "list", "watch", "patch"],
    }),
    { apiGroups: ["events.k8s.io"], resources: ["events"], verbs: ["create"] },
  ];
}

/** Permissions in its own namespace, if any. A rule for `create` cannot name the created object. */
export function ownRules(values: Refs<MultusValues>): Templated<k8s.PolicyRule[]> {
  const { leaderElection } = values.controller;
  const own = not(isIssued(values));
  return when(or(leaderElection, own), [
    when(leaderElection, { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["create"] }),
    when(leaderElection, {
      apiGroups: ["coordination.k8s.io"],
      resources: ["leases"],
      resourceNames: [MULTUS_NAME],
      verbs: ["get", "update"],
    }),
    when(own, {
      apiGroups: [""],
      resources: ["secrets"],
      resourceNames: [WEBHOOK_SECRET],
      verbs: ["get", "list", "watch", "patch"],
    }),
  ]) as Templated<k8s.PolicyRule[]>;
}

/** Permissions in the namespace of the plugin's configuration. */
export const CONFIGURATION_RULES = [
  { apiGroups: [""], resources: ["configmaps"], resourceNames: [CONFIG_MAP], verbs: ["get", "list", "watch"] },
];
