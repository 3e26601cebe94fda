import { matchConstraints } from "../../constructs/admission";
import { concat, type Input } from "../../helm/index";

/** A policy that gives every new Linux node a taint; if it cannot, the node joins without. */
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

/** What the API server says of a token that was made for a pod: the name of the pod's node (Kubernetes 1.30). */
const NODE_NAME = "authentication.kubernetes.io/node-name";

/** A part of a node that is the same after a change. */
const unchanged = (path: string, empty: string) =>
  `object.${path}.orValue(${empty}) == oldObject.${path}.orValue(${empty})`;

/** All of a node but its taints that an update changes, and what stands for nothing there. */
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
 * A policy that lets an installer change only its own node, which RBAC cannot, and there only remove the taint. A
 * stolen token could otherwise attract pods by labels, or by removing other taints.
 * @param account the installer's user name
 */
export function ownNodePolicy(account: Input<string>, key: Input<string>) {
  const taints = "spec.?taints.orValue([])";
  return {
    // No webhook is called, so an outage cannot keep nodes from being changed.
    failurePolicy: "Fail",
    matchConstraints: matchConstraints("UPDATE", "nodes"),
    matchConditions: [{ name: "installer", expression: concat('request.userInfo.username == "', account, '"') }],
    validations: [
      {
        expression: `object.metadata.name == request.userInfo.?extra[?"${NODE_NAME}"][?0].orValue("")`,
        message: `this service account may change no node but the one that its token names (${NODE_NAME})`,
        reason: "Forbidden",
      },
      {
        expression: [
          ...Object.entries(NOT_THE_TAINT).map(([path, empty]) => unchanged(path, empty)),
          `object.${taints}.all(taint, taint in oldObject.${taints})`,
        ].join(" && "),
        message: "this service account may remove a taint from its node, and change nothing else",
        reason: "Forbidden",
      },
      {
        expression: concat(`oldObject.${taints}.all(taint, taint.key == "`, key, `" || taint in object.${taints})`),
        message: "this service account may remove no taint from its node but the one that it is for",
        reason: "Forbidden",
      },
    ],
  };
}
