import { App, Chart } from "cdk8s";
import { CNI_NAME } from "../cni/contract";
import { reasonOf } from "../cni/errors";
import { LinkerdCni, type LinkerdCniProps, LinkerdNamespace } from "../constructs";
import { writeManifests } from "../helm/index";

export const FORMATS = ["yaml", "json"] as const;
export type Format = (typeof FORMATS)[number];

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

/** Namespaces that exist before the installation, and that `kubectl delete` must not remove. */
const isShared = (namespace: string): boolean => /^(kube-.*|default|linkerd)$/.test(namespace);

/** Problems of constructs, one per line. */
function problemsOf(error: unknown): Error {
  const problems = reasonOf(error)
    .split("\n")
    .map((line) => line.replace(/^\s*\[[^\]]*\] /, ""))
    .filter((line) => !line.startsWith("Validation failed"));
  return new Error([...new Set(problems)].join("\nl5d-cni: "));
}

/**
 * All objects of an installation, its namespace first, unless that belongs to Kubernetes or the control plane.
 * @throws an Error with every problem
 */
export function installed(values: unknown, namespace: string): readonly Manifest[] {
  const chart = new Chart(new App(), CNI_NAME);
  if (!isShared(namespace)) new LinkerdNamespace(chart, "namespace", { name: namespace });
  new LinkerdCni(chart, "cni", { ...(values as LinkerdCniProps), namespace });
  try {
    return chart.toJson() as Manifest[];
  } catch (error) {
    throw problemsOf(error);
  }
}

/** Manifests as kubectl reads them: YAML documents, or one JSON list. */
export function formatted(manifests: readonly Manifest[], format: Format): string {
  if (format === "yaml") return writeManifests(manifests);
  return `${JSON.stringify({ apiVersion: "v1", kind: "List", items: manifests }, undefined, 2)}\n`;
}
