import type { IConstruct } from "constructs";
import { Container } from "../cni/contract";
import { assert, capabilities, HelmChart, type Input, type Refs, when } from "../helm/index";
import type { Values } from "./values";

/** Kubernetes has a field for it since this version; before, an annotation for each container. */
const FIELD_SINCE = "1.30";
const ANNOTATION = `container.apparmor.security.beta.kubernetes.io/${Container.installer}`;
const TOO_OLD =
  `appArmorProfile: pods have this field from Kubernetes ${FIELD_SINCE} on; for this cluster set podAnnotations instead, ` +
  `such as ${ANNOTATION}: runtime/default`;

/**
 * The AppArmor profile of all containers of a pod, if one is given. The cluster's version is known only in Helm charts.
 */
export function appArmorOf(scope: IConstruct, { appArmorProfile: profile }: Pick<Refs<Values>, "appArmorProfile">) {
  if (profile === undefined) return undefined;
  const hasField: Input<boolean> = HelmChart.find(scope) === undefined ? true : capabilities.atLeast(FIELD_SINCE);
  return when(profile, assert(hasField, TOO_OLD, profile));
}
