import type { k8s } from "cdk8s-plus-27";
import { or, present, type Refs, type Templated, when } from "./helm";
import { isServed } from "./pod";
import { REPAIR_PORT, type Values } from "./values";

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
