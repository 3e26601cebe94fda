import { Chart } from "cdk8s";
import { k8s } from "cdk8s-plus-27";
import { Construct } from "constructs";
import type { LinkerdNamespaceProps } from "../namespace";
import { checkNamespace } from "../problems";
import { NAME, SELECTOR } from "./names";

/**
 * The namespace that the operator is installed in. Not part of a Helm chart: Helm makes it by `--create-namespace`.
 * Its pods need no privileges.
 */
export class LinkerdMultusNamespace extends Construct {
  /** @param props - `name` is by default the chart's namespace, else "linkerd-multus" */
  constructor(scope: Construct, id: string, props: LinkerdNamespaceProps = {}) {
    super(scope, id);
    checkNamespace(props.name);
    const labels = {
      ...SELECTOR,
      "config.linkerd.io/admission-webhooks": "disabled",
      "pod-security.kubernetes.io/enforce": "restricted",
    };
    new k8s.KubeNamespace(this, "namespace", {
      metadata: { name: props.name ?? Chart.of(this).namespace ?? NAME, labels },
    });
  }
}
