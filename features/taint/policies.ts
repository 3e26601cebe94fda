import { matchConstraints } from "../../constructs/admission";
import { concat, type Input } from "../../helm/index";

/** A policy that taints every new Linux node; if the policy fails, the node joins without the taint. */
export function taintPolicy(key: Input<string>) {
  const taint = concat('Object.spec.taints{key: "', key, '", effect: "NoSchedule"}');
  return {
    failurePolicy: "Ignore",
    reinvocationPolicy: "Never",
    matchConstraints: matchConstraints("CREATE", "nodes"),
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

/** The field in which the API server gives the node of the pod that a token is bound to (Kubernetes 1.30). */
const NODE_NAME = "authentication.kubernetes.io/node-name";

/** Tests that a change leaves a part of a node as it is. */
const unchanged = (path: string, empty: string) =>
  `object.${path}.orValue(${empty}) == oldObject.${path}.orValue(${empty})`;

/** The parts of a node that an update can change, except its taints, with their empty values. */
const NOT_THE_TAINT = {
  "metadata.?labels": "{}",
  "metadata.?annotations": "{}",
  "metadata.?finalizers": "[]",
  "metadata.?ownerReferences": "[]",
  "spec.?unschedulable": "false",
  "spec.?providerID": '""',
  "spec.?podCIDR": '""',
  "spec.?podCIDRs": "[]",
  "spec.?externalID": '""',
} as const;

/**
 * A policy that lets an installer change only its own node, and there only remove the taint. RBAC cannot do that. A
 * stolen token could otherwise attract pods by labels, or by removing other taints.
 * @param account the installer's user name
 */
export function ownNodePolicy(account: Input<string>, key: Input<string>) {
  const taints = "spec.?taints.orValue([])";
  return {
    // The API server evaluates it without a webhook, so an outage cannot block changes of nodes.
    failurePolicy: "Fail",
    matchConstraints: matchConstraints("UPDATE", "nodes"),
    matchConditions: [{ name: "installer", expression: concat('request.userInfo.username == "', account, '"') }],
    validations: [
      {
        expression: `object.metadata.name == request.userInfo.?extra[?"${NODE_NAME}"][?0].orValue("")`,
        message: `this service account may change only the node that its token names (${NODE_NAME})`,
        reason: "Forbidden",
      },
      {
        expression: [
          ...Object.entries(NOT_THE_TAINT).map(([path, empty]) => unchanged(path, empty)),
          `object.${taints}.all(taint, taint in oldObject.${taints})`,
        ].join(" && "),
        message: "this service account may only remove a taint from its node",
        reason: "Forbidden",
      },
      {
        expression: concat(`oldObject.${taints}.all(taint, taint.key == "`, key, `" || taint in object.${taints})`),
        message: "this service account may remove only its own taint from the node",
        reason: "Forbidden",
      },
    ],
  };
}
