/** The versions in which clusters have MutatingAdmissionPolicy. */
export const MUTATING_POLICY_VERSIONS = ["v1beta1", "v1"] as const;

/**
 * Requests about nodes or pods. The API server fills in what is empty here and takes the constraints as a whole: without
 * it, whoever applies the same manifest server-side would conflict with whoever did so before.
 */
export const matchConstraints = (operation: "CREATE" | "UPDATE", resource: "nodes" | "pods") => ({
  matchPolicy: "Equivalent",
  namespaceSelector: {},
  objectSelector: {},
  resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: [operation], resources: [resource], scope: "*" }],
});
