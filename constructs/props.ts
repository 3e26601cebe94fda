import type { Input } from "../helm/index";

// Made from constructs/values.ts by synthesis: change it there, then run `npm run build -- charts`.

/** All values of the chart, each known. */
export interface Values {
  readonly inboundProxyPort: number;
  readonly outboundProxyPort: number;
  readonly proxyAdminPort: number;
  readonly proxyControlPort: number;
  readonly ignoreInboundPorts: string;
  readonly ignoreOutboundPorts: string;
  readonly portsToRedirect: string;
  readonly proxyUID: number;
  readonly proxyGID: number;
  readonly logLevel: "trace" | "debug" | "info" | "warn" | "error" | "warning" | "fatal" | "panic";
  readonly platform:
    | ""
    | "aks"
    | "bottlerocket"
    | "eks"
    | "gke"
    | "k3s"
    | "kind"
    | "microk8s"
    | "minikube"
    | "openshift"
    | "rke2"
    | "talos";
  readonly destCNINetDir: string;
  readonly chained: boolean;
  readonly chaining: "auto" | "dropin" | "edit" | "auxiliary";
  readonly multus: { readonly auxiliaryChainDir: string };
  readonly destCNIBinDir: string;
  readonly multipleCNIBinDirs: boolean;
  readonly useWaitFlag: boolean;
  readonly iptablesMode: "auto" | "native" | "nft" | "legacy" | "plain";
  readonly disableIPv6: boolean;
  readonly podLookup: "auto" | "api" | "annotations";
  readonly strictStatus: boolean;
  readonly healthPort: number;
  readonly uninstallOnStop: "auto" | "always" | "never";
  readonly pluginLog: boolean;
  readonly runDir: string;
  readonly hostNetwork: boolean;
  readonly priorityClassName: string;
  readonly resourceQuota: { readonly create: "auto" | "always" | "never"; readonly pods: number };
  readonly revisionHistoryLimit: number;
  readonly updateStrategy: {
    readonly type: "RollingUpdate" | "OnDelete";
    readonly rollingUpdate: { readonly maxSurge: string; readonly maxUnavailable: string };
  };
  readonly privileged: boolean;
  readonly seLinuxOptions?:
    | {
        readonly level?: string | undefined;
        readonly role?: string | undefined;
        readonly type?: string | undefined;
        readonly user?: string | undefined;
      }
    | undefined;
  readonly appArmorProfile?:
    | {
        readonly type: "RuntimeDefault" | "Unconfined" | "Localhost";
        readonly localhostProfile?: string | undefined;
      }
    | undefined;
  readonly rbac: { readonly minimal: boolean };
  readonly pluginToken: { readonly dedicated: boolean; readonly expirationSeconds: number; readonly onNode: boolean };
  readonly networkPolicy: {
    readonly enabled: boolean;
    readonly from: readonly {
      readonly ipBlock?: { readonly cidr: string; readonly except?: readonly string[] | undefined } | undefined;
      readonly namespaceSelector?: { readonly [key: string]: unknown } | undefined;
      readonly podSelector?: { readonly [key: string]: unknown } | undefined;
    }[];
  };
  readonly namespaceUIDRange: { readonly admissionPolicy: "" | "v1beta1" | "v1" };
  readonly helmTest: {
    readonly enabled: boolean;
    readonly tolerations: readonly {
      readonly key?: string | undefined;
      readonly operator?: "Exists" | "Equal" | undefined;
      readonly value?: string | undefined;
      readonly effect?: "NoSchedule" | "PreferNoSchedule" | "NoExecute" | undefined;
      readonly tolerationSeconds?: number | undefined;
    }[];
  };
  readonly nodeTaint: {
    readonly enabled: boolean;
    readonly key: string;
    readonly admissionPolicy: "" | "v1beta1" | "v1";
    readonly ownNodeOnly: boolean;
  };
  readonly podMonitor: { readonly enabled: boolean; readonly labels: Readonly<Record<string, string>> };
  readonly prometheusRule: {
    readonly enabled: boolean;
    readonly labels: Readonly<Record<string, string>>;
    readonly runbookUrl: string;
    readonly notReadyMinutes: number;
    readonly contests: number;
    readonly addErrors: number;
    readonly addMilliseconds: number;
  };
  readonly grafanaDashboard: {
    readonly enabled: boolean;
    readonly labels: Readonly<Record<string, string>>;
    readonly folder: string;
  };
  readonly tolerations: readonly {
    readonly key?: string | undefined;
    readonly operator?: "Exists" | "Equal" | undefined;
    readonly value?: string | undefined;
    readonly effect?: "NoSchedule" | "PreferNoSchedule" | "NoExecute" | undefined;
    readonly tolerationSeconds?: number | undefined;
  }[];
  readonly nodeSelector: Readonly<Record<string, string>>;
  readonly nodeAffinity?:
    | {
        readonly requiredDuringSchedulingIgnoredDuringExecution?:
          | {
              readonly nodeSelectorTerms: readonly {
                readonly matchExpressions?:
                  | readonly {
                      readonly key: string;
                      readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt";
                      readonly values?: readonly string[] | undefined;
                    }[]
                  | undefined;
                readonly matchFields?:
                  | readonly {
                      readonly key: string;
                      readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt";
                      readonly values?: readonly string[] | undefined;
                    }[]
                  | undefined;
              }[];
            }
          | undefined;
        readonly preferredDuringSchedulingIgnoredDuringExecution?:
          | readonly {
              readonly preference: {
                readonly matchExpressions?:
                  | readonly {
                      readonly key: string;
                      readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt";
                      readonly values?: readonly string[] | undefined;
                    }[]
                  | undefined;
                readonly matchFields?:
                  | readonly {
                      readonly key: string;
                      readonly operator: "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt";
                      readonly values?: readonly string[] | undefined;
                    }[]
                  | undefined;
              };
              readonly weight: number;
            }[]
          | undefined;
      }
    | undefined;
  readonly affinity: Readonly<Record<string, unknown>>;
  readonly image: {
    readonly name: string;
    readonly version: string;
    readonly digest: string;
    readonly pullPolicy: "IfNotPresent" | "Always" | "Never";
  };
  readonly imagePullSecrets: readonly { readonly name: string }[];
  readonly extraInitContainers: readonly {
    readonly name: string;
    readonly image: string;
    readonly [key: string]: unknown;
  }[];
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
  readonly repairController: {
    readonly enabled: boolean;
    readonly logLevel: "trace" | "debug" | "info" | "warn" | "error";
    readonly logFormat: "plain" | "json";
    readonly enableSecurityContext: boolean;
    readonly deletionsPerSecond: number;
    readonly deletionBurst: number;
    readonly deleteUnowned: boolean;
    readonly deleteUnvalidated: boolean;
    readonly resources: {
      readonly cpu: { readonly limit: string | number; readonly request: string | number };
      readonly memory: { readonly limit: string | number; readonly request: string | number };
      readonly "ephemeral-storage": { readonly limit: string | number; readonly request: string | number };
    };
  };
  readonly resources: {
    readonly cpu: { readonly limit: string | number; readonly request: string | number };
    readonly memory: { readonly limit: string | number; readonly request: string | number };
    readonly "ephemeral-storage": { readonly limit: string | number; readonly request: string | number };
  };
  readonly nri: {
    readonly enabled: boolean;
    readonly socketDir: string;
    readonly netnsDir: string;
    readonly index: string;
    readonly require: { readonly admissionPolicy: "" | "v1beta1" | "v1" };
    readonly resources: {
      readonly cpu: { readonly limit: string | number; readonly request: string | number };
      readonly memory: { readonly limit: string | number; readonly request: string | number };
      readonly "ephemeral-storage": { readonly limit: string | number; readonly request: string | number };
    };
  };
}

/** The values in the group `multus`. */
export interface MultusProps {
  /**
   * With chaining `auxiliary`: the folder on the node with the auxiliary chain, named by auxiliaryCNIChainName of
   * Multus' daemon and beside its clusterNetwork; the default is OpenShift's.
   * @default "/run/multus/cni/net.d/vendor-cni-chain"
   */
  readonly auxiliaryChainDir?: Input<Values["multus"]["auxiliaryChainDir"]> | undefined;
}

/** The values in the group `resourceQuota`. */
export interface ResourceQuotaProps {
  /**
   * Whether to create a ResourceQuota, without which clusters such as GKE's admit pods of a `system-` priority class in
   * kube-system only: `auto` with such a priorityClassName outside kube-system; `always` with any priorityClassName;
   * `never`.
   * @default "auto"
   */
  readonly create?: Input<Values["resourceQuota"]["create"]> | undefined;
  /** How many pods this ResourceQuota allows. @default 5000 */
  readonly pods?: Input<Values["resourceQuota"]["pods"]> | undefined;
}

/** The values in the group `rollingUpdate`. */
export interface RollingUpdateProps {
  /**
   * On how many nodes the new pod starts before the old one ends, as a number or a percentage; empty means 1, or 0 with
   * maxUnavailable or with hostNetwork, where both pods need the same ports.
   * @default ""
   */
  readonly maxSurge?: Input<string | number> | undefined;
  /**
   * On how many nodes the old pod ends before the new one starts, as a number or a percentage; empty means 0, or 1 if
   * maxSurge is 0.
   * @default ""
   */
  readonly maxUnavailable?: Input<string | number> | undefined;
}

/** The values in the group `updateStrategy`. */
export interface UpdateStrategyProps {
  /** How pods are replaced when the DaemonSet changes. @default "RollingUpdate" */
  readonly type?: Input<Values["updateStrategy"]["type"]> | undefined;
  readonly rollingUpdate?: RollingUpdateProps | undefined;
}

/** The values in the group `rbac`. */
export interface RbacProps {
  /**
   * Grant only what this plugin uses: reading single pods, namespaces and nodes, the service `kubernetes`, and its own
   * DaemonSet.
   * @default false
   */
  readonly minimal?: Input<Values["rbac"]["minimal"]> | undefined;
}

/** The values in the group `pluginToken`. */
export interface PluginTokenProps {
  /**
   * Give the plugin on the node a token of a service account of its own, which may only read single pods, namespaces
   * and the service `kubernetes`; if it is refused, or with false, the plugin uses the installer's.
   * @default true
   */
  readonly dedicated?: Input<Values["pluginToken"]["dedicated"]> | undefined;
  /** Lifetime of this token in seconds; it is renewed after 70 to 80 percent of it. @default 86400 */
  readonly expirationSeconds?: Input<Values["pluginToken"]["expirationSeconds"]> | undefined;
  /**
   * Write the token into the plugin's kubeconfig on the node, for when the installer does not answer; with false meshed
   * pods that have to be looked up start only while it does; needs `pluginLog`.
   * @default true
   */
  readonly onNode?: Input<Values["pluginToken"]["onNode"]> | undefined;
}

/** The values in the group `networkPolicy`. */
export interface NetworkPolicyProps {
  /** Create a NetworkPolicy that allows only connections to the probe and metrics ports of the pods. @default false */
  readonly enabled?: Input<Values["networkPolicy"]["enabled"]> | undefined;
  /** NetworkPolicy peers that may connect to these ports; empty for everyone. @default [] */
  readonly from?: Input<Values["networkPolicy"]["from"]> | undefined;
}

/** The values in the group `namespaceUIDRange`. */
export interface NamespaceUIDRangeProps {
  /**
   * Create a MutatingAdmissionPolicy of this API version that annotates pods to be injected with a user id of their
   * namespace's `openshift.io/sa.scc.uid-range`: the first plus 2102, or the first. Empty creates none; the operator of
   * chart linkerd-multus does the same by its webhook.
   * @default ""
   */
  readonly admissionPolicy?: Input<Values["namespaceUIDRange"]["admissionPolicy"]> | undefined;
}

/** The values in the group `helmTest`. */
export interface HelmTestProps {
  /** Render the pod of `helm test`; set false where something else than Helm applies the manifests. @default true */
  readonly enabled?: Input<Values["helmTest"]["enabled"]> | undefined;
  /**
   * Tolerations of the pod that `helm test` creates; it finds out whether the plugin redirects pods.
   * @default [{"key":"node-role.kubernetes.io/control-plane","operator":"Exists"}]
   */
  readonly tolerations?: Input<Values["helmTest"]["tolerations"]> | undefined;
}

/** The values in the group `nodeTaint`. */
export interface NodeTaintProps {
  /**
   * Remove the startup taint from a node once its CNI configuration is complete; nodes must be registered with this
   * taint.
   * @default false
   */
  readonly enabled?: Input<Values["nodeTaint"]["enabled"]> | undefined;
  /**
   * Key of the startup taint. The Cluster Autoscaler adds no nodes for pods that do not tolerate it, unless the key
   * begins with `startup-taint.cluster-autoscaler.kubernetes.io/`.
   * @default "linkerd.io/cni-not-ready"
   */
  readonly key?: Input<Values["nodeTaint"]["key"]> | undefined;
  /**
   * Create a MutatingAdmissionPolicy of this API version that taints every new Linux node. Nodes that tolerations or
   * nodeAffinity exclude keep the taint. Empty creates none: start the kubelets with `--register-with-taints` instead.
   * @default ""
   */
  readonly admissionPolicy?: Input<Values["nodeTaint"]["admissionPolicy"]> | undefined;
  /**
   * Create a ValidatingAdmissionPolicy that limits each installer to this taint of its own node; needs Kubernetes 1.30,
   * so set it to false on older versions.
   * @default true
   */
  readonly ownNodeOnly?: Input<Values["nodeTaint"]["ownNodeOnly"]> | undefined;
}

/** The values in the group `podMonitor`. */
export interface PodMonitorProps {
  /**
   * Create a PodMonitor (Prometheus Operator) for the metrics of the installer and the repair controller, and one for
   * the NRI plugin's.
   * @default false
   */
  readonly enabled?: Input<Values["podMonitor"]["enabled"]> | undefined;
  /** Labels of the PodMonitor, by which Prometheus selects it. @default {} */
  readonly labels?: Input<Values["podMonitor"]["labels"]> | undefined;
}

/** The values in the group `prometheusRule`. */
export interface PrometheusRuleProps {
  /**
   * Create a PrometheusRule (Prometheus Operator) with alerts about the plugin, the repair controller and the NRI
   * plugin.
   * @default false
   */
  readonly enabled?: Input<Values["prometheusRule"]["enabled"]> | undefined;
  /** Labels of the PrometheusRule, by which Prometheus selects it. @default {} */
  readonly labels?: Input<Values["prometheusRule"]["labels"]> | undefined;
  /**
   * URL of the runbooks; an alert links to its page below, NAME.md.
   * @default "https://github.com/linkerd-cni-cdk8s/linkerd-cni/blob/main/docs/runbooks"
   */
  readonly runbookUrl?: Input<Values["prometheusRule"]["runbookUrl"]> | undefined;
  /**
   * How long a node may be not ready, or its installer may not answer Prometheus, without causing an alert.
   * @default 5
   */
  readonly notReadyMinutes?: Input<Values["prometheusRule"]["notReadyMinutes"]> | undefined;
  /** How often another writer must undo the chain in 15 minutes to cause an alert. @default 3 */
  readonly contests?: Input<Values["prometheusRule"]["contests"]> | undefined;
  /** How many ADD calls of a node must fail in 15 minutes to cause an alert. @default 5 */
  readonly addErrors?: Input<Values["prometheusRule"]["addErrors"]> | undefined;
  /** How long the slowest hundredth of a node's ADD calls (p99) may take without causing an alert. @default 1000 */
  readonly addMilliseconds?: Input<Values["prometheusRule"]["addMilliseconds"]> | undefined;
}

/** The values in the group `grafanaDashboard`. */
export interface GrafanaDashboardProps {
  /** Create a ConfigMap with a dashboard, as Grafana's sidecar reads it. @default false */
  readonly enabled?: Input<Values["grafanaDashboard"]["enabled"]> | undefined;
  /** Labels of the ConfigMap, besides grafana_dashboard: "1", by which the sidecar finds it. @default {} */
  readonly labels?: Input<Values["grafanaDashboard"]["labels"]> | undefined;
  /** Folder of the dashboard in Grafana (annotation grafana_folder). @default "Linkerd" */
  readonly folder?: Input<Values["grafanaDashboard"]["folder"]> | undefined;
}

/** The values in the group `image`. */
export interface ImageProps {
  /** Name of the image. @default "ghcr.io/linkerd-cni-cdk8s/linkerd-cni" */
  readonly name?: Input<Values["image"]["name"]> | undefined;
  /** Tag of the image. @default "0.1.0" */
  readonly version?: Input<string | number> | undefined;
  /** Digest of the image, `sha256:` and 64 hexadecimal digits; with one, the tag is not used. @default "" */
  readonly digest?: Input<Values["image"]["digest"]> | undefined;
  /** When the image is pulled. @default "IfNotPresent" */
  readonly pullPolicy?: Input<Values["image"]["pullPolicy"]> | undefined;
}

/** The values in the group `cpu`. */
export interface CpuProps {
  /** The most CPU that the container may use. @default "" */
  readonly limit?: Input<Values["repairController"]["resources"]["cpu"]["limit"]> | undefined;
  /** The CPU that the container asks for. @default "" */
  readonly request?: Input<Values["repairController"]["resources"]["cpu"]["request"]> | undefined;
}

/** The values in the group `memory`. */
export interface MemoryProps {
  /** The most memory that the container may use. @default "" */
  readonly limit?: Input<Values["repairController"]["resources"]["memory"]["limit"]> | undefined;
  /** The memory that the container asks for. @default "" */
  readonly request?: Input<Values["repairController"]["resources"]["memory"]["request"]> | undefined;
}

/** The values in the group `ephemeral-storage`. */
export interface EphemeralStorageProps {
  /** The most local storage that the container may use. @default "" */
  readonly limit?: Input<Values["repairController"]["resources"]["ephemeral-storage"]["limit"]> | undefined;
  /** The local storage that the container asks for. @default "" */
  readonly request?: Input<Values["repairController"]["resources"]["ephemeral-storage"]["request"]> | undefined;
}

/** The values in the group `resources`. */
export interface ResourcesProps {
  readonly cpu?: CpuProps | undefined;
  readonly memory?: MemoryProps | undefined;
  readonly "ephemeral-storage"?: EphemeralStorageProps | undefined;
}

/** The values in the group `repairController`. */
export interface RepairControllerProps {
  /** Run the repair controller, which replaces pods that started before the plugin was in place. @default false */
  readonly enabled?: Input<Values["repairController"]["enabled"]> | undefined;
  /** Log level of the repair controller. @default "info" */
  readonly logLevel?: Input<Values["repairController"]["logLevel"]> | undefined;
  /** Log format of the repair controller. @default "plain" */
  readonly logFormat?: Input<Values["repairController"]["logFormat"]> | undefined;
  /** Give the repair controller's container a security context. @default true */
  readonly enableSecurityContext?: Input<Values["repairController"]["enableSecurityContext"]> | undefined;
  /** Maximum number of pods per second that the repair controller of a node deletes. @default 1 */
  readonly deletionsPerSecond?: Input<Values["repairController"]["deletionsPerSecond"]> | undefined;
  /** How many pods it may delete in a burst, before deletionsPerSecond applies. @default 10 */
  readonly deletionBurst?: Input<Values["repairController"]["deletionBurst"]> | undefined;
  /** Also delete broken pods that no controller replaces, as linkerd's repair controller does. @default false */
  readonly deleteUnowned?: Input<Values["repairController"]["deleteUnowned"]> | undefined;
  /** Ignored: pods without a redirect that have no validator are reported, not evicted. @default false */
  readonly deleteUnvalidated?: Input<Values["repairController"]["deleteUnvalidated"]> | undefined;
  readonly resources?: ResourcesProps | undefined;
}

/** The values in the group `require`. */
export interface RequireProps {
  /**
   * Create a MutatingAdmissionPolicy of this API version that annotates meshed pods with
   * `required-plugins.noderesource.dev`: a runtime with NRI's default validator switched on then refuses their
   * containers while the NRI plugin is not connected. Empty creates none.
   * @default ""
   */
  readonly admissionPolicy?: Input<Values["nri"]["require"]["admissionPolicy"]> | undefined;
}

/** The values in the group `cpu`. */
export interface ResourcesCpuProps {
  /** The most CPU that the container may use. @default "" */
  readonly limit?: Input<Values["nri"]["resources"]["cpu"]["limit"]> | undefined;
  /** The CPU that the container asks for. @default "50m" */
  readonly request?: Input<Values["nri"]["resources"]["cpu"]["request"]> | undefined;
}

/** The values in the group `memory`. */
export interface ResourcesMemoryProps {
  /** The most memory that the container may use. @default "" */
  readonly limit?: Input<Values["nri"]["resources"]["memory"]["limit"]> | undefined;
  /** The memory that the container asks for. @default "32Mi" */
  readonly request?: Input<Values["nri"]["resources"]["memory"]["request"]> | undefined;
}

/** The values in the group `resources`. */
export interface NriResourcesProps {
  readonly cpu?: ResourcesCpuProps | undefined;
  readonly memory?: ResourcesMemoryProps | undefined;
  readonly "ephemeral-storage"?: EphemeralStorageProps | undefined;
}

/** The values in the group `nri`. */
export interface NriProps {
  /**
   * Run the NRI plugin as a second DaemonSet: it sets the redirect where the chain did not, also in place for pods that
   * run already; needs containerd 2.0, CRI-O 1.30 or another runtime with NRI, and iptablesMode auto or native.
   * @default false
   */
  readonly enabled?: Input<Values["nri"]["enabled"]> | undefined;
  /** Directory on the node with the container runtime's socket nri.sock. @default "/var/run/nri" */
  readonly socketDir?: Input<Values["nri"]["socketDir"]> | undefined;
  /**
   * Directory on the node where the container runtime mounts the network namespaces of pods.
   * @default "/var/run/netns"
   */
  readonly netnsDir?: Input<Values["nri"]["netnsDir"]> | undefined;
  /** Place of the NRI plugin among others, two digits; the runtime calls plugins in this order. @default "10" */
  readonly index?: Input<string | number> | undefined;
  readonly require?: RequireProps | undefined;
  readonly resources?: NriResourcesProps | undefined;
}

/** The values of the chart: each one known, or in a Helm chart an expression. */
export interface ValuesProps {
  /** Port on which the proxy accepts inbound connections. @default 4143 */
  readonly inboundProxyPort?: Input<Values["inboundProxyPort"]> | undefined;
  /** Port on which the proxy accepts outbound connections. @default 4140 */
  readonly outboundProxyPort?: Input<Values["outboundProxyPort"]> | undefined;
  /** The proxy's admin port; inbound, it is not redirected. @default 4191 */
  readonly proxyAdminPort?: Input<Values["proxyAdminPort"]> | undefined;
  /** The proxy's control port (tap); inbound, it is not redirected. @default 4190 */
  readonly proxyControlPort?: Input<Values["proxyControlPort"]> | undefined;
  /** Inbound ports and ranges that are not redirected, comma-separated. @default "" */
  readonly ignoreInboundPorts?: Input<string | number> | undefined;
  /** Outbound ports and ranges that are not redirected, comma-separated. @default "" */
  readonly ignoreOutboundPorts?: Input<string | number> | undefined;
  /** Inbound ports that are redirected, comma-separated; empty for all. @default "" */
  readonly portsToRedirect?: Input<string | number> | undefined;
  /** User id of the proxy; 0 is refused, because the proxy's own traffic would loop. @default 2102 */
  readonly proxyUID?: Input<Values["proxyUID"]> | undefined;
  /** Group id of the proxy; a negative number means no rule for it. @default -1 */
  readonly proxyGID?: Input<Values["proxyGID"]> | undefined;
  /** Log level of the plugin and the installer. @default "info" */
  readonly logLevel?: Input<Values["logLevel"]> | undefined;
  /**
   * Preset for a Kubernetes platform as it is usually installed: the two directories of its nodes, and the SELinux
   * context and security context constraint that it needs; values that you set win. `l5d-cni check --pre` names yours.
   * @default ""
   */
  readonly platform?: Input<Values["platform"]> | undefined;
  /**
   * Directory from which the nodes' container runtime reads the CNI configuration (confDir in crictl info); empty for
   * the platform's, else /etc/cni/net.d.
   * @default ""
   */
  readonly destCNINetDir?: Input<Values["destCNINetDir"]> | undefined;
  /**
   * Add the plugin to the nodes' CNI configuration; false if only Multus calls it (chart linkerd-multus), or if the NRI
   * plugin alone redirects (nri.enabled).
   * @default true
   */
  readonly chained?: Input<Values["chained"]> | undefined;
  /**
   * How the plugin is added: `dropin`: by a file of its own beside the node's CNI configuration, which stays as it is;
   * `edit`: in that file; `auto`: by a drop-in if the container runtime reads it (containerd 2.1, CRI-O 1.34), else by
   * an edit, and on platform openshift as `auxiliary`; `auxiliary`: in the auxiliary chain of Multus, which then calls
   * the plugin for every pod. After a boot at which the primary CNI writes its file again, an edit is missing until the
   * installer runs; a drop-in is not.
   * @default "auto"
   */
  readonly chaining?: Input<Values["chaining"]> | undefined;
  readonly multus?: MultusProps | undefined;
  /**
   * Directory in which the nodes' container runtime looks for CNI plugins (binDir in crictl info), with those of the
   * primary CNI; empty for the platform's, else /opt/cni/bin.
   * @default ""
   */
  readonly destCNIBinDir?: Input<Values["destCNIBinDir"]> | undefined;
  /**
   * The container runtime searches several directories for plugins (bin_dirs of containerd, plugin_dirs of CRI-O),
   * destCNIBinDir among them. By default the installer chains the plugin only if destCNIBinDir holds all other plugins
   * of the chain.
   * @default false
   */
  readonly multipleCNIBinDirs?: Input<Values["multipleCNIBinDirs"]> | undefined;
  /**
   * Wait for the xtables lock (`-w`) in modes nft, legacy and plain; `native` takes none, `auto` waits in any case.
   * @default false
   */
  readonly useWaitFlag?: Input<Values["useWaitFlag"]> | undefined;
  /**
   * How the rules are programmed: `native` over netlink without any program of the host, `nft`, `legacy` and `plain` by
   * the host's iptables, `auto` by what the host has.
   * @default "auto"
   */
  readonly iptablesMode?: Input<Values["iptablesMode"]> | undefined;
  /** Program rules for IPv4 only. @default true */
  readonly disableIPv6?: Input<Values["disableIPv6"]> | undefined;
  /**
   * Which pods the plugin asks the API server about if the runtime passes their annotations: `auto`: meshed pods;
   * `annotations`: only meshed pods that linkerd's injector did not make; `api`: all pods.
   * @default "auto"
   */
  readonly podLookup?: Input<Values["podLookup"]> | undefined;
  /**
   * Report the node as not ready (CNI STATUS) while the plugin's credentials do not work, or its kernel is too old for
   * iptablesMode.
   * @default false
   */
  readonly strictStatus?: Input<Values["strictStatus"]> | undefined;
  /**
   * Port of the installer's probes (/live, /ready) and /metrics. 0 turns them off: a pod then counts as ready before it
   * has installed the plugin, and the repair controller (port 9990) does not wait for the installer.
   * @default 9991
   */
  readonly healthPort?: Input<Values["healthPort"]> | undefined;
  /**
   * Whether a stopping installer removes the plugin from its node: `auto` if its DaemonSet is gone, so that updates
   * leave nodes alone; `always`; `never`.
   * @default "auto"
   */
  readonly uninstallOnStop?: Input<Values["uninstallOnStop"]> | undefined;
  /** Mount the node's runDir, so that the installer shows the plugin's log in its own. @default true */
  readonly pluginLog?: Input<Values["pluginLog"]> | undefined;
  /**
   * Directory on the node of the plugin's log and the installer's socket; another one for each of several Kubernetes
   * distributions on a host.
   * @default "/run/linkerd-cni"
   */
  readonly runDir?: Input<Values["runDir"]> | undefined;
  /** Run the pods in the node's network namespace. @default false */
  readonly hostNetwork?: Input<Values["hostNetwork"]> | undefined;
  /** Priority class of the pods; recommended where the namespace may use it: system-node-critical. @default "" */
  readonly priorityClassName?: Input<Values["priorityClassName"]> | undefined;
  readonly resourceQuota?: ResourceQuotaProps | undefined;
  /** How many old revisions of the DaemonSet are kept. @default 10 */
  readonly revisionHistoryLimit?: Input<Values["revisionHistoryLimit"]> | undefined;
  readonly updateStrategy?: UpdateStrategyProps | undefined;
  /**
   * Run the installer's container privileged; needed where SELinux denies writing to the directories.
   * @default false
   */
  readonly privileged?: Input<Values["privileged"]> | undefined;
  /**
   * SELinux context of the installer's container, as an alternative to `privileged`, and of the NRI plugin's; without
   * one, the platform's.
   * @default none
   */
  readonly seLinuxOptions?: Input<NonNullable<Values["seLinuxOptions"]>> | undefined;
  /**
   * AppArmor profile of the pods, from Kubernetes 1.30 on; before, set `podAnnotations`. Without one, the container
   * runtime's default.
   * @default none
   */
  readonly appArmorProfile?: Input<NonNullable<Values["appArmorProfile"]>> | undefined;
  readonly rbac?: RbacProps | undefined;
  readonly pluginToken?: PluginTokenProps | undefined;
  readonly networkPolicy?: NetworkPolicyProps | undefined;
  readonly namespaceUIDRange?: NamespaceUIDRangeProps | undefined;
  readonly helmTest?: HelmTestProps | undefined;
  readonly nodeTaint?: NodeTaintProps | undefined;
  readonly podMonitor?: PodMonitorProps | undefined;
  readonly prometheusRule?: PrometheusRuleProps | undefined;
  readonly grafanaDashboard?: GrafanaDashboardProps | undefined;
  /**
   * Tolerations of the pods; the plugin is needed on every node that runs meshed pods.
   * @default [{"operator":"Exists"}]
   */
  readonly tolerations?: Input<Values["tolerations"]> | undefined;
  /** Labels of the nodes that the pods may run on, besides kubernetes.io/os: linux. @default {} */
  readonly nodeSelector?: Input<Values["nodeSelector"]> | undefined;
  /** Node affinity of the pods; replaces that in `affinity`. @default none */
  readonly nodeAffinity?: Input<NonNullable<Values["nodeAffinity"]>> | undefined;
  /** Affinity of the pods. @default {} */
  readonly affinity?: Input<Values["affinity"]> | undefined;
  readonly image?: ImageProps | undefined;
  /** Names of secrets to pull the image with. @default [] */
  readonly imagePullSecrets?: Input<Values["imagePullSecrets"]> | undefined;
  /** Containers that run to their end before the installer starts. @default [] */
  readonly extraInitContainers?: Input<Values["extraInitContainers"]> | undefined;
  /**
   * Environment variables of the installer, the repair controller and the NRI plugin, besides the chart's own.
   * @default []
   */
  readonly extraEnv?: Input<Values["extraEnv"]> | undefined;
  /** Manifests that are installed with the chart, as they are: nothing in them is a template. @default [] */
  readonly extraObjects?: Input<Values["extraObjects"]> | undefined;
  /** How many seconds a pod may take to end before it is killed. @default 30 */
  readonly terminationGracePeriodSeconds?: Input<Values["terminationGracePeriodSeconds"]> | undefined;
  /** Annotations of the pods, besides the chart's own. @default {} */
  readonly podAnnotations?: Input<Values["podAnnotations"]> | undefined;
  /** Labels of the pods, besides the chart's own. @default {} */
  readonly podLabels?: Input<Values["podLabels"]> | undefined;
  /** Labels of every resource, besides the chart's own. @default {} */
  readonly commonLabels?: Input<Values["commonLabels"]> | undefined;
  readonly repairController?: RepairControllerProps | undefined;
  readonly resources?: ResourcesProps | undefined;
  readonly nri?: NriProps | undefined;
}
