import type { k8s } from "cdk8s-plus-27";
import { REPAIR_PORT } from "../cni/contract";
import { type Input, or, type Part, present, type Refs, type Templated, when } from "../helm/index";
import { isServed } from "./container";
import type { Values } from "./values";

/** A port open to connections. */
export const tcp = (port: Input<number>) => ({ port, protocol: "TCP" });

/** Limits ingress of pods to what the rules allow. */
export const ingressOnly = (
  matchLabels: Readonly<Record<string, string>>,
  ingress: Templated<k8s.NetworkPolicyIngressRule[]> | undefined,
): Part<k8s.NetworkPolicySpec> => ({ podSelector: { matchLabels }, policyTypes: ["Ingress"], ingress });

/** Lets connections to the probes and metrics of pods in, and no others. */
export function networkPolicySpec(
  { networkPolicy: { from }, healthPort, repairController }: Refs<Values>,
  matchLabels: Readonly<Record<string, string>>,
): Part<k8s.NetworkPolicySpec> {
  const ports = [when(isServed(healthPort), tcp(healthPort)), when(repairController.enabled, tcp(REPAIR_PORT))];
  // No list of ports would be every port.
  const rules = when(or(isServed(healthPort), repairController.enabled), [{ from: present(from), ports }]);
  return ingressOnly(matchLabels, rules as Templated<k8s.NetworkPolicyIngressRule[]>);
}
