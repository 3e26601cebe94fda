import { Chart } from "cdk8s";
import { k8s } from "cdk8s-plus-27";
import { Construct } from "constructs";
import { CNI_NAME, Label } from "../cni/contract";

/** The name of the plugin's namespace. */
export interface LinkerdNamespaceProps {
  /** The name of the namespace. @default the chart's namespace, else "linkerd-cni" */
  readonly name?: string | undefined;
}

/**
 * Labels of the namespace: the installer mounts directories of the node, which only privileged namespaces allow, and
 * must not wait for Linkerd's webhooks, whose pods wait for the installer.
 */
export const NAMESPACE_LABELS = {
  [Label.admissionWebhooks]: "disabled",
  "pod-security.kubernetes.io/enforce": "privileged",
} as const;

/** Problems of a namespace's name, if it is known. */
export function namespaceProblems(name: unknown): readonly string[] {
  if (typeof name !== "string" || /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name)) return [];
  const rule = "up to 63 of a-z, 0-9 and -, neither beginning nor ending with -";
  return [`namespace: ${JSON.stringify(name)} is not a name for one: ${rule}`];
}

/** The namespace that the plugin is installed in. Not part of a Helm chart: Helm does not label namespaces. */
export class LinkerdNamespace extends Construct {
  constructor(scope: Construct, id: string, props: LinkerdNamespaceProps = {}) {
    super(scope, id);
    this.node.addValidation({ validate: () => [...namespaceProblems(props.name)] });
    const labels = { [Label.cniResource]: "true", ...NAMESPACE_LABELS };
    new k8s.KubeNamespace(this, "namespace", {
      metadata: { name: props.name ?? Chart.of(this).namespace ?? CNI_NAME, labels },
    });
  }
}
