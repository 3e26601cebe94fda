import type { k8s } from "cdk8s-plus-27";
import type { HelmMetadata, Input, Parts, Refs } from "../helm/index";
import type { Values } from "./props";

/** Of the pods on every node. */
export type Tolerations = Refs<Values>["tolerations"] | undefined;

/** What an optional feature adds to the resources that LinkerdCni has without it. */
export interface Feature {
  /** Variables of the installer. */
  readonly env: Parts<k8s.EnvVar>;
  /** What the installer's pods may do in the cluster. */
  readonly rules: Parts<k8s.PolicyRule>;
  /** What the pods on every node tolerate. @param given what they tolerate without the feature */
  tolerations(given: Tolerations): Tolerations;
}

/** What a feature is made with. */
export interface FeatureProps {
  readonly values: Refs<Values>;
  /** The name of LinkerdCni's resources, among them the service account of the installer. */
  readonly name: string;
  readonly namespace: Input<string>;
  /** Of resources of the whole cluster. */
  readonly clusterMetadata: HelmMetadata;
}
