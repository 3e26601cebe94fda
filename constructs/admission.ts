import type { ApiObject, GroupVersionKind } from "cdk8s";
import type { Construct } from "constructs";
import { Annotation } from "../cni/contract";
import { and, eq, type HelmManifest, HelmObject, type Input } from "../helm/index";

/** The API versions of MutatingAdmissionPolicy. */
export const MUTATING_POLICY_VERSIONS = ["v1beta1", "v1"] as const;

/**
 * Requests for nodes or pods. The API server defaults the empty fields and owns the constraints as a whole: without
 * them, two clients that apply the same manifest server-side would conflict.
 */
export const matchConstraints = (operation: "CREATE" | "UPDATE", resource: "nodes" | "pods") => ({
  matchPolicy: "Equivalent",
  namespaceSelector: {},
  objectSelector: {},
  resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: [operation], resources: [resource], scope: "*" }],
});

/** A condition in CEL: the object has an annotation. */
export const hasAnnotation = (name: string): string => `object.metadata.?annotations["${name}"].hasValue()`;

/** Excludes static pods: the kubelet runs them from files and ignores the API's copy. */
export const NOT_STATIC = {
  name: "not-static",
  expression: `!${hasAnnotation(Annotation.mirror)}`,
};

/** An admission policy and its binding. */
export interface AdmissionPolicy {
  readonly policy: ApiObject;
  readonly binding: ApiObject;
}

type Manifest = HelmManifest<{ spec: object }> & {
  readonly metadata: { readonly name: string };
  readonly spec: object;
};

/** Adds an admission policy and its binding. @param bound the binding's spec, besides the policy's name */
export function admissionPolicy(
  scope: Construct,
  id: string,
  { apiVersion, kind }: GroupVersionKind,
  manifest: Manifest,
  bound: object = {},
): AdmissionPolicy {
  const add = (part: string, of: string, spec: object) =>
    new HelmObject<{ spec: object }>(scope, `${id}-${part}`, { apiVersion, kind: of }, { ...manifest, spec });
  return {
    policy: add("policy", kind, manifest.spec),
    binding: add("binding", `${kind}Binding`, { policyName: manifest.metadata.name, ...bound }),
  };
}

/** Adds a MutatingAdmissionPolicy in the API version that a value names; its name ends with the version. */
export function mutatingPolicy(scope: Construct, id: string, chosen: Input<string>, manifest: Manifest) {
  const { metadata, when } = manifest;
  const of = (version: (typeof MUTATING_POLICY_VERSIONS)[number]) => {
    const isChosen = eq<string>(chosen, version);
    const type = { apiVersion: `admissionregistration.k8s.io/${version}`, kind: "MutatingAdmissionPolicy" };
    return admissionPolicy(scope, `${id}-${version}`, type, {
      ...manifest,
      when: when === undefined ? isChosen : and(when, isChosen),
      metadata: { ...metadata, name: `${metadata.name}-${version}` },
    });
  };
  return { v1beta1: of("v1beta1"), v1: of("v1") };
}
