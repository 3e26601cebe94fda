import { App, Chart } from "cdk8s";
import { CNI_NAME } from "../cni/contract";
import { LinkerdCni, type LinkerdCniProps, LinkerdNamespace } from "../constructs";
import { writeManifests } from "../constructs/helm";

export const FORMATS = ["yaml", "json"] as const;
export type Format = (typeof FORMATS)[number];

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

/** Namespaces that are there before us, and hold what `kubectl delete` must not take with us. */
const isShared = (namespace: string): boolean => /^(kube-.*|default|linkerd)$/.test(namespace);

/** Everything that is installed, its namespace first, unless that is one of Kubernetes' or the control plane's. @throws an Error with every problem */
export function installed(values: unknown, namespace: string): readonly Manifest[] {
  const chart = new Chart(new App(), CNI_NAME);
  if (!isShared(namespace)) new LinkerdNamespace(chart, "namespace", { name: namespace });
  new LinkerdCni(chart, "cni", { ...(values as LinkerdCniProps), namespace });
  return chart.toJson() as Manifest[];
}

/** Manifests as kubectl reads them: YAML documents, or one JSON list. */
export function formatted(manifests: readonly Manifest[], format: Format): string {
  if (format === "yaml") return writeManifests(manifests);
  return `${JSON.stringify({ apiVersion: "v1", kind: "List", items: manifests }, undefined, 2)}\n`;
}
