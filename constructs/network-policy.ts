import type { k8s } from "cdk8s-plus-27";
import { z } from "zod";
import { flag, or, present, type Refs, type Templated, when } from "./helm";
import { isServed, REPAIR_PORT } from "./pod";
import { group, peer } from "./value-groups";
import type { Values } from "./values";

export const networkPolicy = group({
  enabled: flag().default(false).meta({
    description: "Create a NetworkPolicy that lets connections to the pods' probe and metrics ports in, and no others",
  }),
  from: z
    .array(peer)
    .default([])
    .meta({
      description: "Who may connect to these ports, as NetworkPolicy peers; empty for everyone",
      examples: [[{ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "monitoring" } } }]],
    }),
});

/** Lets connections to the probes and metrics of pods in, and no others. */
export function networkPolicySpec(
  { networkPolicy: { from }, healthPort, repairController }: Refs<Values>,
  matchLabels: Readonly<Record<string, string>>,
): Templated<k8s.NetworkPolicySpec> {
  const ports = [
    when(isServed(healthPort), { port: healthPort, protocol: "TCP" }),
    when(repairController.enabled, { port: REPAIR_PORT, protocol: "TCP" }),
  ];
  return {
    podSelector: { matchLabels },
    policyTypes: ["Ingress"],
    // No list of ports would be every port.
    ingress: when(or(isServed(healthPort), repairController.enabled), [{ from: present(from), ports }]),
  };
}
