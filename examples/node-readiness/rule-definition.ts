/** The definition of the rules, shortened to what a rule needs. */
export const RULE_DEFINITION = {
  apiVersion: "apiextensions.k8s.io/v1",
  kind: "CustomResourceDefinition",
  metadata: { name: "nodereadinessrules.readiness.node.x-k8s.io" },
  spec: {
    group: "readiness.node.x-k8s.io",
    names: {
      kind: "NodeReadinessRule",
      plural: "nodereadinessrules",
      singular: "nodereadinessrule",
      shortNames: ["nrr"],
    },
    scope: "Cluster",
    versions: [
      {
        name: "v1alpha1",
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: "object",
            properties: {
              spec: {
                type: "object",
                required: ["conditions", "enforcementMode", "nodeSelector", "taint"],
                properties: {
                  conditions: {
                    type: "array",
                    items: {
                      type: "object",
                      required: ["type", "requiredStatus"],
                      properties: { type: { type: "string" }, requiredStatus: { type: "string" } },
                    },
                  },
                  enforcementMode: { type: "string", enum: ["bootstrap-only", "continuous"] },
                  nodeSelector: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
                  taint: {
                    type: "object",
                    required: ["key", "effect"],
                    properties: { key: { type: "string" }, effect: { type: "string" }, value: { type: "string" } },
                  },
                },
              },
              status: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
            },
          },
        },
      },
    ],
  },
};
