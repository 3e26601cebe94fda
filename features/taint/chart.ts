import type { ApiObject } from "cdk8s";
import { Construct } from "constructs";
import { InstallerVariable } from "../../cni/contract";
import { MUTATING_POLICY_VERSIONS } from "../../constructs/admission";
import type { Feature, FeatureProps, Tolerations } from "../../constructs/feature";
import type { Values } from "../../constructs/props";
import { and, concat, eq, HelmObject, type Input, items, type Refs, when } from "../../helm/index";
import { ownNodePolicy, taintPolicy } from "./policies";

/** An admission policy and its binding. */
export interface AdmissionPolicy {
  readonly policy: ApiObject;
  readonly binding: ApiObject;
}

/** The startup taint: the policies that add it to new nodes and let each installer remove it only from its own node. */
export class NodeTaint extends Construct implements Feature {
  /** With `nodeTaint.admissionPolicy`: taints every new Linux node, with the API version of the cluster. */
  readonly taintPolicies: Readonly<Record<(typeof MUTATING_POLICY_VERSIONS)[number], AdmissionPolicy>>;
  /** With `nodeTaint.ownNodeOnly`: an installer cannot change another installer's node. */
  readonly ownNodePolicy: AdmissionPolicy;
  private readonly values: Refs<Values>["nodeTaint"];

  constructor(scope: Construct, id: string, { values, name, namespace, clusterMetadata }: FeatureProps) {
    super(scope, id);
    this.values = values.nodeTaint;
    const { enabled, key, admissionPolicy, ownNodeOnly } = this.values;
    const add = (id: string, version: string, kind: string, when: Input<boolean>, named: string, spec: object) => {
      const type = { apiVersion: `admissionregistration.k8s.io/${version}`, kind };
      return new HelmObject<{ spec: object }>(this, id, type, {
        when: and(enabled, when),
        metadata: { ...clusterMetadata, name: named },
        spec,
      });
    };
    const taintPolicies = MUTATING_POLICY_VERSIONS.map((version) => {
      const [named, when] = [`${name}-node-taint-${version}`, eq<string>(admissionPolicy, version)];
      const kind = "MutatingAdmissionPolicy";
      const policy = add(`policy-${version}`, version, kind, when, named, taintPolicy(key));
      const binding = add(`binding-${version}`, version, `${kind}Binding`, when, named, { policyName: named });
      return [version, { policy, binding }] as const;
    });
    this.taintPolicies = Object.fromEntries(taintPolicies) as unknown as NodeTaint["taintPolicies"];
    const [named, kind] = [`${name}-own-node`, "ValidatingAdmissionPolicy"];
    const account = concat("system:serviceaccount:", namespace, `:${name}`);
    const enforced = { policyName: named, validationActions: ["Deny"] };
    this.ownNodePolicy = {
      policy: add("own-node-policy", "v1", kind, ownNodeOnly, named, ownNodePolicy(account, key)),
      binding: add("own-node-binding", "v1", `${kind}Binding`, ownNodeOnly, named, enforced),
    };
  }

  get env(): Feature["env"] {
    const { enabled, key } = this.values;
    return [when(enabled, { name: InstallerVariable.nodeTaint, value: key })];
  }

  /** A role cannot be limited to one node; the policy of `nodeTaint.ownNodeOnly` does that. */
  get rules(): Feature["rules"] {
    return [when(this.values.enabled, { apiGroups: [""], resources: ["nodes"], verbs: ["get", "patch"] })];
  }

  /** Pods always tolerate the taint, whatever its effect: on a node without an installer, it would stay. */
  tolerations(given: Tolerations): Tolerations {
    const { enabled, key } = this.values;
    const own = { key, operator: "Exists" };
    return when(enabled, [...(given === undefined ? [] : items(given)), own], given) as Tolerations;
  }
}
