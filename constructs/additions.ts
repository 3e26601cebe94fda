import type { k8s } from "cdk8s-plus-27";
import { items, type Parts, type Refs, type Templated } from "../helm/index";
import { extraEnvOf } from "./container";
import type { PodParts } from "./pod";
import type { Values } from "./values";

/** Parts that users add to the pods of one DaemonSet. */
export class Additions {
  readonly containers: Templated<k8s.Container>[] = [];
  readonly initContainers: Templated<k8s.Container>[] = [];
  readonly volumes: Templated<k8s.Volume>[] = [];
  readonly env: Templated<k8s.EnvVar>[] = [];

  /** The values with the added variables, which the chart's own containers get. */
  valuesOf(values: Refs<Values>): Refs<Values> {
    return { ...values, extraEnv: [...extraEnvOf(values), ...this.env] as Refs<Values>["extraEnv"] };
  }

  /** The pods with the other parts. */
  podOf(spec: PodParts): PodParts {
    const containers = [...spec.containers, ...this.containers];
    const volumes = [...spec.volumes, ...this.volumes];
    if (this.initContainers.length === 0) return { ...spec, containers, volumes };
    const before = items((spec.initContainers ?? []) as Parts<k8s.Container>);
    return { ...spec, containers, volumes, initContainers: [...before, ...this.initContainers] };
  }
}
