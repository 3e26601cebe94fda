import { Chart } from "cdk8s";
import { k8s } from "cdk8s-plus-27";
import { Construct } from "constructs";
import { Label, MULTUS_NAME } from "../../cni/contract";
import { type LinkerdNamespaceProps, namespaceProblems } from "../namespace";
import { SELECTOR } from "./pod";

/** The name of the operator's namespace, and its Pod Security Standard. */
export interface LinkerdMultusNamespaceProps extends LinkerdNamespaceProps {
  /** The name of the namespace. @default the chart's namespace, else "linkerd-multus" */
  readonly name?: string | undefined;
  /**
   * The Pod Security Standard of the namespace. The operator's pods need no privileges, but with `hostNetwork` the
   * standard must be "privileged": the others forbid the host network.
   * @default "restricted"
   */
  readonly podSecurity?: "privileged" | "baseline" | "restricted" | undefined;
}

/** The namespace that the operator is installed in. Not part of a Helm chart: Helm makes it by `--create-namespace`. */
export class LinkerdMultusNamespace extends Construct {
  constructor(scope: Construct, id: string, props: LinkerdMultusNamespaceProps = {}) {
    super(scope, id);
    this.node.addValidation({ validate: () => [...namespaceProblems(props.name)] });
    const labels = {
      ...SELECTOR,
      [Label.admissionWebhooks]: "disabled",
      "pod-security.kubernetes.io/enforce": props.podSecurity ?? "restricted",
    };
    new k8s.KubeNamespace(this, "namespace", {
      metadata: { name: props.name ?? Chart.of(this).namespace ?? MULTUS_NAME, labels },
    });
  }
}
