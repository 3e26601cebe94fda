import type { Input } from "../../helm/index";

// Made from constructs/multus/values.ts by synthesis: change it there, then run `npm run build -- charts`.

/** All values of the chart, each known. */
export interface MultusValues {
  readonly replicaCount: number;
  readonly controller: {
    readonly cniNamespace: string;
    readonly linkerdControlPlaneNamespace: string;
    readonly cniKubeconfigNodePath: string;
    readonly namespaceUIDRangeAnnotation: string;
    readonly linkerdProxyUIDOffset: number;
    readonly leaderElection: boolean;
    readonly requestsPerSecond: number;
    readonly requestBurst: number;
  };
  readonly webhook: {
    readonly failurePolicy: "Fail" | "Ignore";
    readonly timeoutSeconds: number;
    readonly namespaceSelector: {
      readonly matchLabels: Readonly<Record<string, string>>;
      readonly matchExpressions: readonly {
        readonly key: string;
        readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
        readonly values?: readonly string[] | undefined;
      }[];
    };
    readonly objectSelector: {
      readonly matchLabels: Readonly<Record<string, string>>;
      readonly matchExpressions: readonly {
        readonly key: string;
        readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist";
        readonly values?: readonly string[] | undefined;
      }[];
    };
    readonly certificates: "self" | "cert-manager";
    readonly certificateValidityHours: number;
    readonly issuerRef?:
      | { readonly name: string; readonly kind?: string | undefined; readonly group?: string | undefined }
      | undefined;
  };
  readonly service: { readonly webhookPort: number; readonly metricsPort: number; readonly healthPort: number };
  readonly logLevel: "trace" | "debug" | "info" | "warn" | "error";
  readonly logFormat: "plain" | "json";
  readonly image: {
    readonly name: string;
    readonly version: string;
    readonly digest: string;
    readonly pullPolicy: "IfNotPresent" | "Always" | "Never";
  };
  readonly imagePullSecrets: readonly { readonly name: string }[];
  readonly resources: {
    readonly cpu: { readonly limit: string | number; readonly request: string | number };
    readonly memory: { readonly limit: string | number; readonly request: string | number };
    readonly "ephemeral-storage": { readonly limit: string | number; readonly request: string | number };
  };
  readonly runAsUser: number;
  readonly hostNetwork: boolean;
  readonly priorityClassName: string;
  readonly nodeSelector: Readonly<Record<string, string>>;
  readonly tolerations: readonly {
    readonly key?: string | undefined;
    readonly operator?: "Exists" | "Equal" | undefined;
    readonly value?: string | undefined;
    readonly effect?: "NoSchedule" | "PreferNoSchedule" | "NoExecute" | undefined;
    readonly tolerationSeconds?: number | undefined;
  }[];
  readonly affinity?: { readonly [key: string]: unknown } | undefined;
  readonly topologySpreadConstraints: readonly { readonly topologyKey: string; readonly [key: string]: unknown }[];
  readonly podDisruptionBudget: { readonly enabled: boolean; readonly maxUnavailable: string };
  readonly networkPolicy: {
    readonly enabled: boolean;
    readonly from: readonly {
      readonly ipBlock?: { readonly cidr: string; readonly except?: readonly string[] | undefined } | undefined;
      readonly namespaceSelector?: { readonly [key: string]: unknown } | undefined;
      readonly podSelector?: { readonly [key: string]: unknown } | undefined;
    }[];
  };
  readonly podMonitor: { readonly enabled: boolean; readonly labels: Readonly<Record<string, string>> };
  readonly prometheusRule: {
    readonly enabled: boolean;
    readonly labels: Readonly<Record<string, string>>;
    readonly runbookUrl: string;
  };
  readonly extraEnv: readonly {
    readonly name: string;
    readonly value?: string | undefined;
    readonly valueFrom?: { readonly [key: string]: unknown } | undefined;
  }[];
  readonly extraObjects: readonly {
    readonly apiVersion: string;
    readonly kind: string;
    readonly metadata: { readonly name: string; readonly [key: string]: unknown };
    readonly [key: string]: unknown;
  }[];
  readonly terminationGracePeriodSeconds: number;
  readonly podAnnotations: Readonly<Record<string, string>>;
  readonly podLabels: Readonly<Record<string, string>>;
  readonly commonLabels: Readonly<Record<string, string>>;
}

/** The values in the group `controller`. */
export interface MultusControllerProps {
  /** Namespace of the chart linkerd2-cni, with ConfigMap linkerd-cni-config. @default "linkerd-cni" */
  readonly cniNamespace?: Input<MultusValues["controller"]["cniNamespace"]> | undefined;
  /** Namespace of Linkerd's control plane, which always has a definition. @default "linkerd" */
  readonly linkerdControlPlaneNamespace?: Input<MultusValues["controller"]["linkerdControlPlaneNamespace"]> | undefined;
  /**
   * The plugin's kubeconfig on the nodes: in linkerd2-cni's destCNINetDir.
   * @default "/etc/cni/net.d/ZZZ-linkerd-cni-kubeconfig"
   */
  readonly cniKubeconfigNodePath?: Input<MultusValues["controller"]["cniKubeconfigNodePath"]> | undefined;
  /**
   * Annotation of namespaces with the range FIRST/SIZE of the user ids that pods may have.
   * @default "openshift.io/sa.scc.uid-range"
   */
  readonly namespaceUIDRangeAnnotation?: Input<MultusValues["controller"]["namespaceUIDRangeAnnotation"]> | undefined;
  /** Offset of the proxy's user id from the first id of that range. @default 2102 */
  readonly linkerdProxyUIDOffset?: Input<MultusValues["controller"]["linkerdProxyUIDOffset"]> | undefined;
  /** With several replicas, let only a leader write the definitions. @default true */
  readonly leaderElection?: Input<MultusValues["controller"]["leaderElection"]> | undefined;
  /** How many definitions are written in a second, at most. @default 20 */
  readonly requestsPerSecond?: Input<MultusValues["controller"]["requestsPerSecond"]> | undefined;
  /** How many may be written in a burst. @default 40 */
  readonly requestBurst?: Input<MultusValues["controller"]["requestBurst"]> | undefined;
}

/** The values in the group `namespaceSelector`. */
export interface MultusNamespaceSelectorProps {
  /**
   * Labels of the namespaces whose pods the webhook sees; it never sees its own, cniNamespace, kube-system, kube-public
   * and kube-node-lease.
   * @default {}
   */
  readonly matchLabels?: Input<MultusValues["webhook"]["namespaceSelector"]["matchLabels"]> | undefined;
  /**
   * Conditions on the labels of the namespaces whose pods the webhook sees; it never sees its own, cniNamespace,
   * kube-system, kube-public and kube-node-lease.
   * @default []
   */
  readonly matchExpressions?: Input<MultusValues["webhook"]["namespaceSelector"]["matchExpressions"]> | undefined;
}

/** The values in the group `objectSelector`. */
export interface MultusObjectSelectorProps {
  /** Labels of the pods that the webhook sees. @default {} */
  readonly matchLabels?: Input<MultusValues["webhook"]["objectSelector"]["matchLabels"]> | undefined;
  /** Conditions on the labels of the pods that the webhook sees. @default [] */
  readonly matchExpressions?: Input<MultusValues["webhook"]["objectSelector"]["matchExpressions"]> | undefined;
}

/** The values in the group `webhook`. */
export interface MultusWebhookProps {
  /** Whether a new pod is refused or created unchanged while the webhook does not answer. @default "Fail" */
  readonly failurePolicy?: Input<MultusValues["webhook"]["failurePolicy"]> | undefined;
  /** How long the API server waits for the webhook. @default 10 */
  readonly timeoutSeconds?: Input<MultusValues["webhook"]["timeoutSeconds"]> | undefined;
  readonly namespaceSelector?: MultusNamespaceSelectorProps | undefined;
  readonly objectSelector?: MultusObjectSelectorProps | undefined;
  /** Whether the operator or cert-manager makes and renews the webhook's certificate. @default "self" */
  readonly certificates?: Input<MultusValues["webhook"]["certificates"]> | undefined;
  /** How long one certificate is valid; it is renewed in time. @default 2160 */
  readonly certificateValidityHours?: Input<MultusValues["webhook"]["certificateValidityHours"]> | undefined;
  /** cert-manager's issuer of the certificate; without one, the chart creates a self-signed authority. @default none */
  readonly issuerRef?: Input<NonNullable<MultusValues["webhook"]["issuerRef"]>> | undefined;
}

/** The values in the group `service`. */
export interface MultusServiceProps {
  /** Port of the pods for the webhook. @default 9443 */
  readonly webhookPort?: Input<MultusValues["service"]["webhookPort"]> | undefined;
  /** Port of the pods for /metrics. @default 8080 */
  readonly metricsPort?: Input<MultusValues["service"]["metricsPort"]> | undefined;
  /** Port of the pods for the probes (/healthz, /readyz). @default 8081 */
  readonly healthPort?: Input<MultusValues["service"]["healthPort"]> | undefined;
}

/** The values in the group `image`. */
export interface MultusImageProps {
  /** Name of the image. @default "ghcr.io/linkerd-cni-cdk8s/linkerd-cni" */
  readonly name?: Input<MultusValues["image"]["name"]> | undefined;
  /** Tag of the image. @default "0.1.0" */
  readonly version?: Input<string | number> | undefined;
  /** Digest of the image, `sha256:` and 64 hexadecimal digits; with one, the tag is not used. @default "" */
  readonly digest?: Input<MultusValues["image"]["digest"]> | undefined;
  /** When the image is pulled. @default "IfNotPresent" */
  readonly pullPolicy?: Input<MultusValues["image"]["pullPolicy"]> | undefined;
}

/** The values in the group `cpu`. */
export interface MultusCpuProps {
  /** The most CPU that the container may use. @default "" */
  readonly limit?: Input<MultusValues["resources"]["cpu"]["limit"]> | undefined;
  /** The CPU that the container asks for. @default "" */
  readonly request?: Input<MultusValues["resources"]["cpu"]["request"]> | undefined;
}

/** The values in the group `memory`. */
export interface MultusMemoryProps {
  /** The most memory that the container may use. @default "" */
  readonly limit?: Input<MultusValues["resources"]["memory"]["limit"]> | undefined;
  /** The memory that the container asks for. @default "" */
  readonly request?: Input<MultusValues["resources"]["memory"]["request"]> | undefined;
}

/** The values in the group `ephemeral-storage`. */
export interface MultusEphemeralStorageProps {
  /** The most local storage that the container may use. @default "" */
  readonly limit?: Input<MultusValues["resources"]["ephemeral-storage"]["limit"]> | undefined;
  /** The local storage that the container asks for. @default "" */
  readonly request?: Input<MultusValues["resources"]["ephemeral-storage"]["request"]> | undefined;
}

/** The values in the group `resources`. */
export interface MultusResourcesProps {
  readonly cpu?: MultusCpuProps | undefined;
  readonly memory?: MultusMemoryProps | undefined;
  readonly "ephemeral-storage"?: MultusEphemeralStorageProps | undefined;
}

/** The values in the group `podDisruptionBudget`. */
export interface MultusPodDisruptionBudgetProps {
  /** Create a PodDisruptionBudget. @default true */
  readonly enabled?: Input<MultusValues["podDisruptionBudget"]["enabled"]> | undefined;
  /** How many pods may be away when nodes are drained, as a number or a percentage. @default 1 */
  readonly maxUnavailable?: Input<string | number> | undefined;
}

/** The values in the group `networkPolicy`. */
export interface MultusNetworkPolicyProps {
  /**
   * Create a NetworkPolicy: everyone may connect to the webhook, the peers below to probes and metrics.
   * @default false
   */
  readonly enabled?: Input<MultusValues["networkPolicy"]["enabled"]> | undefined;
  /** NetworkPolicy peers that may connect to the ports of probes and metrics; empty for everyone. @default [] */
  readonly from?: Input<MultusValues["networkPolicy"]["from"]> | undefined;
}

/** The values in the group `podMonitor`. */
export interface MultusPodMonitorProps {
  /** Create a PodMonitor (Prometheus Operator). @default false */
  readonly enabled?: Input<MultusValues["podMonitor"]["enabled"]> | undefined;
  /** Labels of the PodMonitor, by which Prometheus selects it. @default {} */
  readonly labels?: Input<MultusValues["podMonitor"]["labels"]> | undefined;
}

/** The values in the group `prometheusRule`. */
export interface MultusPrometheusRuleProps {
  /** Create a PrometheusRule (Prometheus Operator) with alerts about the operator. @default false */
  readonly enabled?: Input<MultusValues["prometheusRule"]["enabled"]> | undefined;
  /** Labels of the PrometheusRule, by which Prometheus selects it. @default {} */
  readonly labels?: Input<MultusValues["prometheusRule"]["labels"]> | undefined;
  /**
   * URL of the runbooks; an alert links to its page below, NAME.md.
   * @default "https://github.com/linkerd-cni-cdk8s/linkerd-cni/blob/main/docs/runbooks"
   */
  readonly runbookUrl?: Input<MultusValues["prometheusRule"]["runbookUrl"]> | undefined;
}

/** The values of the chart: each one known, or in a Helm chart an expression. */
export interface MultusValuesProps {
  /** How many pods; each serves the webhook, one of them writes the definitions. @default 2 */
  readonly replicaCount?: Input<MultusValues["replicaCount"]> | undefined;
  readonly controller?: MultusControllerProps | undefined;
  readonly webhook?: MultusWebhookProps | undefined;
  readonly service?: MultusServiceProps | undefined;
  /** Log level. @default "info" */
  readonly logLevel?: Input<MultusValues["logLevel"]> | undefined;
  /** Log format. @default "plain" */
  readonly logFormat?: Input<MultusValues["logFormat"]> | undefined;
  readonly image?: MultusImageProps | undefined;
  /** Names of secrets to pull the image with. @default [] */
  readonly imagePullSecrets?: Input<MultusValues["imagePullSecrets"]> | undefined;
  readonly resources?: MultusResourcesProps | undefined;
  /** User id of the pods; -1 for the one that the cluster assigns, as OpenShift does. @default 65532 */
  readonly runAsUser?: Input<MultusValues["runAsUser"]> | undefined;
  /**
   * Run the pods in the nodes' network, for API servers that cannot reach pods; then one pod per node.
   * @default false
   */
  readonly hostNetwork?: Input<MultusValues["hostNetwork"]> | undefined;
  /** Priority class of the pods. @default "" */
  readonly priorityClassName?: Input<MultusValues["priorityClassName"]> | undefined;
  /** Labels of the nodes that the pods may run on, besides kubernetes.io/os: linux. @default {} */
  readonly nodeSelector?: Input<MultusValues["nodeSelector"]> | undefined;
  /** Tolerations of the pods. @default [] */
  readonly tolerations?: Input<MultusValues["tolerations"]> | undefined;
  /** Affinity of the pods; by default they prefer different nodes. @default none */
  readonly affinity?: Input<NonNullable<MultusValues["affinity"]>> | undefined;
  /** Topology spread constraints of the pods; by default they prefer different zones. @default [] */
  readonly topologySpreadConstraints?: Input<MultusValues["topologySpreadConstraints"]> | undefined;
  readonly podDisruptionBudget?: MultusPodDisruptionBudgetProps | undefined;
  readonly networkPolicy?: MultusNetworkPolicyProps | undefined;
  readonly podMonitor?: MultusPodMonitorProps | undefined;
  readonly prometheusRule?: MultusPrometheusRuleProps | undefined;
  /** Environment variables of the operator, besides the chart's own. @default [] */
  readonly extraEnv?: Input<MultusValues["extraEnv"]> | undefined;
  /** Manifests that are installed with the chart, as they are: nothing in them is a template. @default [] */
  readonly extraObjects?: Input<MultusValues["extraObjects"]> | undefined;
  /** How many seconds a pod may take to end before it is killed. @default 30 */
  readonly terminationGracePeriodSeconds?: Input<MultusValues["terminationGracePeriodSeconds"]> | undefined;
  /** Annotations of the pods, besides the chart's own. @default {} */
  readonly podAnnotations?: Input<MultusValues["podAnnotations"]> | undefined;
  /** Labels of the pods, besides the chart's own. @default {} */
  readonly podLabels?: Input<MultusValues["podLabels"]> | undefined;
  /** Labels of every resource, besides the chart's own. @default {} */
  readonly commonLabels?: Input<MultusValues["commonLabels"]> | undefined;
}
