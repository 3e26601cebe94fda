import type { k8s } from "cdk8s-plus-27";
import type { HelmMetadata, Input, Parts, Refs } from "../helm/index";
import type { Values } from "./props";

/** Of the pods on every node. */
export type Tolerations = Refs<Values>["tolerations"] | undefined;

/** What an optional feature adds to the resources of LinkerdCni. */
export interface Feature {
  /** Variables of the installer. */
  readonly env: Parts<k8s.EnvVar>;
  /** Permissions of the installer's pods in the cluster. */
  readonly rules: Parts<k8s.PolicyRule>;
  /** Tolerations of the pods on every node. @param given the tolerations without the feature */
  tolerations(given: Tolerations): Tolerations;
}

/** The inputs of a feature. */
export interface FeatureProps {
  readonly values: Refs<Values>;
  /** The name of LinkerdCni's resources, including the installer's service account. */
  readonly name: string;
  readonly namespace: Input<string>;
  /** Of cluster-scoped resources. */
  readonly clusterMetadata: HelmMetadata;
}
