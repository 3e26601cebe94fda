import type { k8s } from "cdk8s-plus-27";
import { Construct } from "constructs";
import { CNI_NAME, InstallerVariable, STARTUP_TAINT } from "../cni/contract";
import {
  and,
  concat,
  group,
  type HelmMetadata,
  type Input,
  items,
  type Parts,
  type Refs,
  value,
  when,
} from "../helm/index";
import {
  type AdmissionPolicy,
  admissionPolicy,
  MUTATING_POLICY_VERSIONS,
  matchConstraints,
  mutatingPolicy,
} from "./admission";
import type { Values } from "./values";

export const nodeTaint = group("Startup taint of nodes", {
  enabled: value.boolean({
    default: false,
    description:
      "Remove the startup taint from a node once its CNI configuration is complete; nodes must be registered with this taint",
  }),
  key: value.string({
    pattern: /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?\/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/,
    wrong: "is not a taint's key",
    default: STARTUP_TAINT,
    description:
      "Key of the startup taint. The Cluster Autoscaler adds no nodes for pods that do not tolerate it, unless the key " +
      "begins with `startup-taint.cluster-autoscaler.kubernetes.io/`",
    examples: ["startup-taint.cluster-autoscaler.kubernetes.io/linkerd-cni-not-ready"],
  }),
  admissionPolicy: value.choice(["", ...MUTATING_POLICY_VERSIONS], {
    default: "",
    description:
      "Create a MutatingAdmissionPolicy of this API version that taints every new Linux node. Nodes that tolerations or " +
      "nodeAffinity exclude keep the taint. Empty creates none: start the kubelets with `--register-with-taints` instead",
  }),
  ownNodeOnly: value.boolean({
    default: true,
    description:
      "Create a ValidatingAdmissionPolicy that limits each installer to this taint of its own node; needs Kubernetes " +
      "1.30, so set it to false on older versions",
  }),
});

/** A policy that taints every new Linux node; if the policy fails, the node joins without the taint. */
function taintPolicy(key: Input<string>) {
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
function ownNodePolicy(account: Input<string>, key: Input<string>) {
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

type Tolerations = Refs<Values>["tolerations"] | undefined;

export type NodeTaintProps = Refs<Values>["nodeTaint"] & {
  readonly namespace: Input<string>;
  /** Of cluster-scoped resources. */
  readonly clusterMetadata: HelmMetadata;
};

/** The startup taint: the policies that add it to new nodes and let each installer remove it only from its own node. */
export class NodeTaint extends Construct {
  /** With `nodeTaint.admissionPolicy`: taints every new Linux node, with the API version of the cluster. */
  readonly taintPolicies: ReturnType<typeof mutatingPolicy>;
  /** With `nodeTaint.ownNodeOnly`: an installer cannot change another installer's node. */
  readonly ownNodePolicy: AdmissionPolicy;

  constructor(
    scope: Construct,
    id: string,
    private readonly props: NodeTaintProps,
  ) {
    super(scope, id);
    const { enabled, key, ownNodeOnly, namespace, clusterMetadata } = props;
    this.taintPolicies = mutatingPolicy(this, "policies", props.admissionPolicy, {
      when: enabled,
      metadata: { ...clusterMetadata, name: `${CNI_NAME}-node-taint` },
      spec: taintPolicy(key),
    });
    const account = concat("system:serviceaccount:", namespace, `:${CNI_NAME}`);
    const validating = { apiVersion: "admissionregistration.k8s.io/v1", kind: "ValidatingAdmissionPolicy" };
    const ownNode = {
      when: and(enabled, ownNodeOnly),
      metadata: { ...clusterMetadata, name: `${CNI_NAME}-own-node` },
      spec: ownNodePolicy(account, key),
    };
    this.ownNodePolicy = admissionPolicy(this, "own-node", validating, ownNode, { validationActions: ["Deny"] });
  }

  /** Variables of the installer. */
  get env(): Parts<k8s.EnvVar> {
    const { enabled, key } = this.props;
    return [when(enabled, { name: InstallerVariable.nodeTaint, value: key })];
  }

  /** Permissions of the installer. A role cannot be limited to one node; the policy of `ownNodeOnly` does that. */
  get rules(): Parts<k8s.PolicyRule> {
    return [when(this.props.enabled, { apiGroups: [""], resources: ["nodes"], verbs: ["get", "patch"] })];
  }

  /** Pods always tolerate the taint, whatever its effect: on a node without an installer, it would stay. */
  tolerations(given: Tolerations): Tolerations {
    const { enabled, key } = this.props;
    const own = { key, operator: "Exists" };
    return when(enabled, [...(given === undefined ? [] : items(given)), own], given) as Tolerations;
  }
}
