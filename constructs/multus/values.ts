import { Annotation, CNI_NAME, KUBECONFIG_FILE, NodePath } from "../../cni/contract";
import { LOG_FORMATS, LOG_LEVELS, ProxyDefault } from "../../cni/stanza";
import { group, value, valuesOf } from "../../helm/index";
import { podMonitorGroup, prometheusRuleGroup } from "../monitoring/values";
import {
  ANNOTATION,
  ANYTHING,
  addedMetadata,
  DIRECTORY,
  extraEnv,
  extraObjects,
  image,
  imagePullSecrets,
  LABELS,
  NAMESPACE,
  networkPolicyGroup,
  nodeSelector,
  PORT_NUMBERS,
  PRIORITY_CLASS,
  resources,
  SHARE,
  terminationGracePeriodSeconds,
  toleration,
} from "../value-groups";

const requirement = {
  key: value.string({ required: true, description: "Name of the label" }),
  operator: value.choice(["In", "NotIn", "Exists", "DoesNotExist"], {
    required: true,
    description: "How it is compared with `values`",
  }),
  values: value.texts({ description: "Values to compare with; none for Exists and DoesNotExist" }),
};

const labelSelector = (what: string) =>
  group(`Selector of the ${what}`, {
    matchLabels: value.map({ ...LABELS, default: {}, description: `Labels of the ${what}` }),
    matchExpressions: value.list({
      members: requirement,
      default: [],
      description: `Conditions on the labels of the ${what}`,
    }),
  });

const controller = group("Operator that writes the definitions", {
  cniNamespace: value.string({
    ...NAMESPACE,
    default: CNI_NAME,
    description: "Namespace of the chart linkerd2-cni, with ConfigMap linkerd-cni-config",
  }),
  linkerdControlPlaneNamespace: value.string({
    ...NAMESPACE,
    default: "linkerd",
    description: "Namespace of Linkerd's control plane, which always has a definition",
  }),
  cniKubeconfigNodePath: value.string({
    ...DIRECTORY,
    default: `${NodePath.netDir}/${KUBECONFIG_FILE}`,
    description: "The plugin's kubeconfig on the nodes: in linkerd2-cni's destCNINetDir",
    examples: ["/etc/kubernetes/cni/net.d/ZZZ-linkerd-cni-kubeconfig"],
  }),
  namespaceUIDRangeAnnotation: value.string({
    ...ANNOTATION,
    default: Annotation.uidRange,
    description: "Annotation of namespaces with the range FIRST/SIZE of the user ids that pods may have",
  }),
  linkerdProxyUIDOffset: value.integer({
    min: 0,
    max: 2147483647,
    default: ProxyDefault.uid,
    description: "Offset of the proxy's user id from the first id of that range",
  }),
  leaderElection: value.boolean({
    default: true,
    description: "With several replicas, let only a leader write the definitions",
  }),
  requestsPerSecond: value.integer({
    min: 1,
    max: 1000,
    default: 20,
    description: "How many definitions are written in a second, at most",
  }),
  requestBurst: value.integer({ min: 1, max: 1000, default: 40, description: "How many may be written in a burst" }),
});

const issuer = {
  name: value.string({ notEmpty: true, required: true, description: "Name of the issuer" }),
  kind: value.string({ description: "Kind of the issuer; Issuer by default" }),
  group: value.string({ description: "API group of the issuer; cert-manager.io by default" }),
};

const webhook = group("Webhook that adds the definition to pods", {
  failurePolicy: value.choice(["Fail", "Ignore"], {
    default: "Fail",
    description: "Whether a new pod is refused or created unchanged while the webhook does not answer",
  }),
  timeoutSeconds: value.integer({
    min: 1,
    max: 30,
    default: 10,
    description: "How long the API server waits for the webhook",
  }),
  namespaceSelector: labelSelector(
    "namespaces whose pods the webhook sees; it never sees its own, cniNamespace, kube-system, kube-public and kube-node-lease",
  ),
  objectSelector: labelSelector("pods that the webhook sees"),
  certificates: value.choice(["self", "cert-manager"], {
    default: "self",
    description: "Whether the operator or cert-manager makes and renews the webhook's certificate",
  }),
  certificateValidityHours: value.integer({
    min: 1,
    max: 87600,
    default: 2160,
    description: "How long one certificate is valid; it is renewed in time",
  }),
  issuerRef: value.object({
    members: issuer,
    description: "cert-manager's issuer of the certificate; without one, the chart creates a self-signed authority",
    examples: [{ name: "cluster-ca", kind: "ClusterIssuer" }],
  }),
});

const service = group("Ports of the pods", {
  webhookPort: value.integer({ ...PORT_NUMBERS, default: 9443, description: "Port of the pods for the webhook" }),
  metricsPort: value.integer({ ...PORT_NUMBERS, default: 8080, description: "Port of the pods for /metrics" }),
  healthPort: value.integer({
    ...PORT_NUMBERS,
    default: 8081,
    description: "Port of the pods for the probes (/healthz, /readyz)",
  }),
});

const podDisruptionBudget = group("PodDisruptionBudget of the pods", {
  enabled: value.boolean({ default: true, description: "Create a PodDisruptionBudget" }),
  maxUnavailable: value.numericString({
    ...SHARE,
    default: 1,
    description: "How many pods may be unavailable while nodes are drained, as a number or a percentage",
    examples: ["50%"],
  }),
});

/**
 * Every value of the chart linkerd-multus: its type, default and description. Everything else about values is derived
 * from it.
 */
export const multusValues = valuesOf({
  replicaCount: value.integer({
    min: 0,
    max: 100,
    default: 2,
    description: "How many pods; each serves the webhook, one of them writes the definitions",
  }),
  controller,
  webhook,
  service,
  logLevel: value.choice(LOG_LEVELS, { default: "info", description: "Log level" }),
  logFormat: value.choice(LOG_FORMATS, { default: "plain", description: "Log format" }),
  image: image(),
  imagePullSecrets: imagePullSecrets(),
  resources: resources(),
  runAsUser: value.integer({
    min: -1,
    max: 2147483647,
    default: 65532,
    description: "User id of the pods; -1 for the one that the cluster assigns, as OpenShift does",
  }),
  hostNetwork: value.boolean({
    default: false,
    description: "Run the pods in the nodes' network, for API servers that cannot reach pods; then one pod per node",
  }),
  priorityClassName: value.string({
    ...PRIORITY_CLASS,
    default: "",
    description: "Priority class of the pods",
    examples: ["system-cluster-critical"],
  }),
  nodeSelector,
  tolerations: value.list({ members: toleration, default: [], description: "Tolerations of the pods" }),
  affinity: value.object({
    ...ANYTHING,
    description: "Affinity of the pods; by default they prefer different nodes",
  }),
  topologySpreadConstraints: value.list({
    members: { topologyKey: value.string({ required: true, description: "Label of the nodes that names the domain" }) },
    isOpen: true,
    default: [],
    description: "Topology spread constraints of the pods; by default they prefer different zones",
  }),
  podDisruptionBudget,
  networkPolicy: networkPolicyGroup(
    ": everyone may connect to the webhook, the peers below to probes and metrics",
    "the ports of probes and metrics",
  ),
  podMonitor: podMonitorGroup("a PodMonitor (Prometheus Operator)"),
  prometheusRule: prometheusRuleGroup("the operator"),
  extraEnv: extraEnv("the operator"),
  extraObjects: extraObjects(),
  terminationGracePeriodSeconds: terminationGracePeriodSeconds(1),
  podAnnotations: value.map({ default: {}, description: "Annotations of the pods, besides the chart's own" }),
  ...addedMetadata,
});

/** The definition of the values. */
export type MultusValues = typeof multusValues;
