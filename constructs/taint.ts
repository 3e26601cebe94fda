import { concat, type Input } from "./helm";

/** The versions in which clusters have MutatingAdmissionPolicy. */
export const TAINT_POLICY_VERSIONS = ["v1beta1", "v1"] as const;

/** A policy that gives every new Linux node a taint; where it cannot, the node joins without. */
export function taintPolicy(key: Input<string>) {
  const taint = concat('Object.spec.taints{key: "', key, '", effect: "NoSchedule"}');
  return {
    failurePolicy: "Ignore",
    reinvocationPolicy: "Never",
    matchConstraints: {
      resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources: ["nodes"] }],
    },
    matchConditions: [
      {
        name: "linux",
        expression: 'object.metadata.?labels["kubernetes.io/os"].orValue("linux") == "linux"',
      },
      {
        name: "not-tainted",
        expression: concat('!has(object.spec.taints) || !object.spec.taints.exists(taint, taint.key == "', key, '")'),
      },
    ],
    mutations: [
      {
        patchType: "JSONPatch",
        jsonPatch: {
          expression: concat(
            "has(object.spec.taints) ? ",
            '[JSONPatch{op: "add", path: "/spec/taints/-", value: ',
            taint,
            '}] : [JSONPatch{op: "add", path: "/spec/taints", value: [',
            taint,
            "]}]",
          ),
        },
      },
    ],
  };
}
