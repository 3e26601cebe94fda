import { z } from "zod";
import { Annotation, CNI_NAME, KUBECONFIG_FILE, NodePath } from "../../cni/contract";
import { LOG_FORMATS, LOG_LEVELS } from "../../cni/stanza";
import { flag, integer } from "../../helm/loose-types";
import { prometheusLabels, runbookUrl } from "../monitoring/values";
import {
  extraEnv,
  extraObjects,
  group,
  image,
  imagePullSecrets,
  peer,
  resources,
  terminationGracePeriodSeconds,
  toleration,
} from "../value-groups";
import {
  annotationName,
  directory,
  labels,
  namespaceName,
  port,
  priorityClassName,
  share,
  textMap,
} from "../value-types";

const requirement = z.strictObject({
  key: z.string().meta({ description: "Name of the label" }),
  operator: z.enum(["In", "NotIn", "Exists", "DoesNotExist"]).meta({ description: "How it is compared with `values`" }),
  values: z
    .array(z.string())
    .optional()
    .meta({ description: "Values to compare with; none for Exists and DoesNotExist" }),
});

const labelSelector = (what: string, matchExpressions: readonly z.output<typeof requirement>[]) =>
  group(`Selector of the ${what}`, {
    matchLabels: labels()
      .default({})
      .meta({ description: `Labels of the ${what}` }),
    matchExpressions: z
      .array(requirement)
      .default([...matchExpressions])
      .meta({ description: `Conditions on the labels of the ${what}` }),
  });

const controller = group("Operator that writes the definitions", {
  cniNamespace: namespaceName()
    .default(CNI_NAME)
    .meta({ description: "Namespace of the chart linkerd2-cni, with ConfigMap linkerd-cni-config" }),
  linkerdControlPlaneNamespace: namespaceName()
    .default("linkerd")
    .meta({ description: "Namespace of Linkerd's control plane, which always has a definition" }),
  cniKubeconfigNodePath: directory()
    .default(`${NodePath.netDir}/${KUBECONFIG_FILE}`)
    .meta({
      description: "The plugin's kubeconfig on the nodes: in linkerd2-cni's destCNINetDir",
      examples: ["/etc/kubernetes/cni/net.d/ZZZ-linkerd-cni-kubeconfig"],
    }),
  namespaceUIDRangeAnnotation: annotationName()
    .default(Annotation.uidRange)
    .meta({ description: "Annotation of namespaces with the range FIRST/SIZE of the user ids that pods may have" }),
  linkerdProxyUIDOffset: integer(0, 2147483647)
    .default(2102)
    .meta({ description: "Offset of the proxy's user id from the first id of that range" }),
  leaderElection: flag()
    .default(true)
    .meta({ description: "With several replicas, let only a leader write the definitions" }),
  requestsPerSecond: integer(1, 1000)
    .default(20)
    .meta({ description: "How many definitions are written in a second, at most" }),
  requestBurst: integer(1, 1000).default(40).meta({ description: "How many may be written in a burst" }),
});

const issuer = z.strictObject({
  name: z.string().min(1).meta({ description: "Name of the issuer" }),
  kind: z.string().optional().meta({ description: "Kind of the issuer; Issuer by default" }),
  group: z.string().optional().meta({ description: "API group of the issuer; cert-manager.io by default" }),
});

const webhook = group("Webhook that adds the definition to pods", {
  failurePolicy: z.enum(["Fail", "Ignore"]).default("Fail").meta({
    description: "Whether a new pod is refused or created unchanged while the webhook does not answer",
  }),
  timeoutSeconds: integer(1, 30).default(10).meta({ description: "How long the API server waits for the webhook" }),
  namespaceSelector: labelSelector(
    "namespaces whose pods the webhook sees; it never sees its own, cniNamespace, kube-system, kube-public and kube-node-lease",
    [],
  ),
  objectSelector: labelSelector("pods that the webhook sees", []),
  certificates: z
    .enum(["self", "cert-manager"])
    .default("self")
    .meta({ description: "Whether the operator or cert-manager makes and renews the webhook's certificate" }),
  certificateValidityHours: integer(1, 87600)
    .default(2160)
    .meta({ description: "How long one certificate is valid; it is renewed in time" }),
  issuerRef: issuer.optional().meta({
    description: "cert-manager's issuer of the certificate; without one, the chart creates a self-signed authority",
    examples: [{ name: "cluster-ca", kind: "ClusterIssuer" }],
  }),
});

const service = group("Ports of the pods", {
  webhookPort: port().default(9443).meta({ description: "Port of the pods for the webhook" }),
  metricsPort: port().default(8080).meta({ description: "Port of the pods for /metrics" }),
  healthPort: port().default(8081).meta({ description: "Port of the pods for the probes (/healthz, /readyz)" }),
});

const podDisruptionBudget = group("PodDisruptionBudget of the pods", {
  enabled: flag().default(true).meta({ description: "Create a PodDisruptionBudget" }),
  maxUnavailable: share()
    .prefault(1)
    .meta({
      description: "How many pods may be away when nodes are drained, as a number or a percentage",
      examples: ["50%"],
    }),
});

const networkPolicy = group("NetworkPolicy for the pods", {
  enabled: flag().default(false).meta({
    description: "Create a NetworkPolicy: everyone may connect to the webhook, the peers below to probes and metrics",
  }),
  from: z
    .array(peer)
    .default([])
    .meta({
      description: "NetworkPolicy peers that may connect to the ports of probes and metrics; empty for everyone",
      examples: [[{ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "monitoring" } } }]],
    }),
});

const podMonitor = group("PodMonitor of the Prometheus Operator", {
  enabled: flag().default(false).meta({ description: "Create a PodMonitor (Prometheus Operator)" }),
  labels: prometheusLabels("PodMonitor"),
});

const prometheusRule = group("PrometheusRule of the Prometheus Operator", {
  enabled: flag().default(false).meta({
    description: "Create a PrometheusRule (Prometheus Operator) with alerts about the operator",
  }),
  labels: prometheusLabels("PrometheusRule"),
  runbookUrl: runbookUrl(),
});

/**
 * Every value of the chart linkerd-multus: its type, default and description. Everything else about values is derived
 * from it.
 */
export const multusValues = z.strictObject({
  replicaCount: integer(0, 100)
    .default(2)
    .meta({ description: "How many pods; each serves the webhook, one of them writes the definitions" }),
  controller,
  webhook,
  service,
  logLevel: z.enum(LOG_LEVELS).default("info").meta({ description: "Log level" }),
  logFormat: z.enum(LOG_FORMATS).default("plain").meta({ description: "Log format" }),
  image: image(),
  imagePullSecrets: imagePullSecrets(),
  resources: resources(),
  runAsUser: integer(-1, 2147483647)
    .default(65532)
    .meta({ description: "User id of the pods; -1 for the one that the cluster assigns, as OpenShift does" }),
  hostNetwork: flag().default(false).meta({
    description: "Run the pods in the nodes' network, for API servers that cannot reach pods; then one pod per node",
  }),
  priorityClassName: priorityClassName()
    .default("")
    .meta({ description: "Priority class of the pods", examples: ["system-cluster-critical"] }),
  nodeSelector: labels()
    .default({})
    .meta({ description: "Labels of the nodes that the pods may run on, besides kubernetes.io/os: linux" }),
  tolerations: z.array(toleration).default([]).meta({ description: "Tolerations of the pods" }),
  affinity: z.looseObject({}).optional().meta({
    description: "Affinity of the pods; by default they prefer different nodes",
  }),
  topologySpreadConstraints: z
    .array(z.looseObject({ topologyKey: z.string().meta({ description: "Label of the nodes that names the domain" }) }))
    .default([])
    .meta({ description: "Topology spread constraints of the pods; by default they prefer different zones" }),
  podDisruptionBudget,
  networkPolicy,
  podMonitor,
  prometheusRule,
  extraEnv: extraEnv("the operator"),
  extraObjects: extraObjects(),
  terminationGracePeriodSeconds: terminationGracePeriodSeconds(1),
  podAnnotations: textMap().default({}).meta({ description: "Annotations of the pods, besides the chart's own" }),
  podLabels: labels().default({}).meta({ description: "Labels of the pods, besides the chart's own" }),
  commonLabels: labels().default({}).meta({ description: "Labels of every resource, besides the chart's own" }),
});
