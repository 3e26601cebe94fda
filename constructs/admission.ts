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
