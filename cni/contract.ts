/**
 * Names shared by the charts, the programs in the image and the command line, and names given by Linkerd, Kubernetes
 * and Multus. A name with two users is defined here, once.
 *
 * The plugin's configuration is a separate contract: see stanza.ts.
 */

/** The name of the chart linkerd2-cni's resources, as `linkerd check --pre --linkerd-cni-enabled` expects it. */
export const CNI_NAME = "linkerd-cni";
/** The name of the chart linkerd-multus' resources: its Deployment, Lease and MutatingWebhookConfiguration. */
export const MULTUS_NAME = "linkerd-multus";

/** The name of the resources that `nri.enabled` adds: DaemonSet, ServiceAccount and ClusterRole. */
export const NRI_NAME = `${CNI_NAME}-nri`;

/** The ConfigMap of the chart linkerd2-cni, in its namespace. */
export const CONFIG_MAP = `${CNI_NAME}-config`;
/** The keys of this ConfigMap. */
export const ConfigMapKey = {
  netDir: "dest_cni_net_dir",
  binDir: "dest_cni_bin_dir",
  /** The plugin's configuration, as JSON. */
  stanza: "cni_network_config",
} as const;

/** Containers of the charts. */
export const Container = {
  installer: "install-cni",
  repairController: "repair-controller",
  nri: "nri",
  operator: "operator",
} as const;

/** Containers that Linkerd's injector adds to a pod. */
export const LinkerdContainer = {
  /** Also the name of the init container if the proxy is a native sidecar. */
  proxy: "linkerd-proxy",
  init: "linkerd-init",
  validator: "linkerd-network-validator",
} as const;

/** The volume of {@link NodePath.cniCacheDir} in the installer's pods. */
export const CNI_CACHE_VOLUME = "cni-cache-dir";

/** Directories and files of the node. */
export const NodePath = {
  /** Configuration of CNI plugins. */
  netDir: "/etc/cni/net.d",
  /** Executables of CNI plugins. */
  binDir: "/opt/cni/bin",
  /** Where libcni and Multus cache attachments. */
  cniCacheDir: "/var/lib/cni",
  /** Where OpenShift's Multus looks for the plugins that it calls for every pod. */
  auxiliaryChainDir: "/run/multus/cni/net.d/vendor-cni-chain",
  /** Directory of the plugin's call log and the installer's socket. */
  runDir: "/run/linkerd-cni",
  /** Where the container runtime listens for NRI plugins. */
  nriDir: "/var/run/nri",
  /** Where the container runtime mounts the network namespaces of pods. */
  netnsDir: "/var/run/netns",
} as const;
/** In this record, the verb of the NRI plugin's actions on running pods. */
export const NRI_VERB = "NRI";
/** The name of the plugin's record of its calls. */
export const CALL_LOG_NAME = "plugin.log";
export const CALL_LOG = `${NodePath.runDir}/${CALL_LOG_NAME}`;
/** The name of the installer's socket for look-ups, beside {@link CALL_LOG}. */
export const LOOKUP_SOCKET_NAME = "lookup.sock";
/** The kubeconfig of linkerd's plugin, in the node's directory of CNI configuration. */
export const KUBECONFIG_FILE = "ZZZ-linkerd-cni-kubeconfig";

/** Directory under which the installer's container sees the node's directories. */
export const MOUNT_PREFIX = "/host";
/** Where the operator's container sees the certificate that cert-manager makes. */
export const CERTIFICATE_DIR = "/tls";
/** Where a kubelet mounts the token of a pod's service account. */
export const SERVICE_ACCOUNT_DIR = "/var/run/secrets/kubernetes.io/serviceaccount";

/** Environment variables that a pod's own fields fill in. */
export const PodVariable = {
  nodeName: "NODE_NAME",
  podName: "POD_NAME",
  podNamespace: "POD_NAMESPACE",
  podUid: "POD_UID",
  /** All its addresses, comma-separated. */
  podIps: "POD_IPS",
} as const;

/** Environment variables of the installer, besides {@link PodVariable}. */
export const InstallerVariable = {
  logLevel: "LOG_LEVEL",
  logFormat: "LOG_FORMAT",
  mountPrefix: "CONTAINER_MOUNT_PREFIX",
  netDir: "DEST_CNI_NET_DIR",
  binDir: "DEST_CNI_BIN_DIR",
  /** Directory in the image that holds the plugin. */
  pluginDir: "CONTAINER_CNI_BIN_DIR",
  kubeconfigName: "KUBECONFIG_FILE_NAME",
  chained: "CHAINED",
  chaining: "CHAINING",
  multipleBinDirs: "MULTIPLE_CNI_BIN_DIRS",
  auxiliaryDir: "AUXILIARY_CHAIN_DIR",
  /** The plugin's configuration as JSON, or the file that holds it. */
  stanza: "CNI_NETWORK_CONFIG",
  stanzaFile: "CNI_NETWORK_CONFIG_FILE",
  stopPolicy: "UNINSTALL_ON_STOP",
  nodeTaint: "NODE_TAINT",
  nriEvents: "NRI_EVENTS",
  pluginLog: "PLUGIN_LOG",
  showsPluginLog: "SHOW_PLUGIN_LOG",
  cniCacheDir: "CNI_CACHE_DIR",
  healthPort: "HEALTH_PORT",
} as const;

/** Environment variables of the NRI plugin. */
export const NriVariable = {
  /** The plugin's configuration as JSON. */
  stanza: InstallerVariable.stanza,
  logLevel: InstallerVariable.logLevel,
  logFormat: InstallerVariable.logFormat,
  /** Directory of the runtime's socket `nri.sock`. */
  socketDir: "NRI_SOCKET_DIR",
  netnsDir: "NRI_NETNS_DIR",
  /** Whether the CNI plugin sets the rules as pods start, too. */
  chained: InstallerVariable.chained,
  /** Two digits: plugins are called in their order. */
  index: "NRI_INDEX",
  port: InstallerVariable.healthPort,
} as const;
/** The NRI plugin's name in the runtime, as in the annotation {@link Annotation.requiredPlugins}. */
export const NRI_PLUGIN = CNI_NAME;

/** Environment variables of the repair controller, with linkerd's names. */
export const RepairVariable = {
  nodeName: "LINKERD_CNI_REPAIR_CONTROLLER_NODE_NAME",
  podName: "LINKERD_CNI_REPAIR_CONTROLLER_POD_NAME",
  stanza: InstallerVariable.stanza,
} as const;

/** Environment variables with the API server's address. */
export const ApiServerVariable = {
  host: "KUBERNETES_SERVICE_HOST",
  port: "KUBERNETES_SERVICE_PORT",
  caFile: "KUBE_CA_FILE",
  serviceAccountDir: "SERVICE_ACCOUNT_DIR",
} as const;

/** Flags of the repair controller. */
export const RepairFlag = {
  adminAddress: "admin-addr",
  logLevel: "log-level",
  logFormat: "log-format",
  installerReady: "installer-ready",
  deletionsPerSecond: "deletions-per-second",
  deletionBurst: "deletion-burst",
  deleteUnowned: "delete-unowned",
  waitForNri: "wait-for-nri",
} as const;

/** Flags of the Multus operator; the first nine equal those of linkerd's. */
export const OperatorFlag = {
  cniNamespace: "cni-namespace",
  linkerdNamespace: "linkerd-namespace",
  cniKubeconfig: "cni-kubeconfig",
  uidRangeAnnotation: "namespace-uid-range-annotation",
  proxyUidOffset: "linkerd-proxy-uid-offset",
  webhookPort: "webhook-port",
  metricsAddress: "metrics-bind-address",
  healthAddress: "health-probe-bind-address",
  leaderElect: "leader-elect",
  logLevel: "log-level",
  logFormat: "log-format",
  webhookService: "webhook-service",
  webhookConfiguration: "webhook-configuration",
  certificates: "webhook-certificates",
  certificateSecret: "webhook-certificate-secret",
  certificateDir: "webhook-certificate-dir",
  certificateValidity: "webhook-certificate-validity-hours",
  requestsPerSecond: "requests-per-second",
  requestBurst: "request-burst",
} as const;

/** The issuer of the webhook's certificate: the operator, or cert-manager, whose Secret is mounted. */
export const CERTIFICATE_SOURCES = ["self", "mounted"] as const;

export const CHAININGS = ["auto", "dropin", "edit", "auxiliary"] as const;
/**
 * How the stanza is added to the container runtime's configuration: `dropin`: a separate file beside the owner's list;
 * `edit`: in the owner's list; `auto`: a drop-in if the runtime reads it, else an edit; `auxiliary`: in Multus'
 * auxiliary chain.
 */
export type Chaining = (typeof CHAININGS)[number];

/** The installer's log message about a chained node, followed by the way and the reason in parentheses. */
export const CHAINED_NOTE = "pods that start from now on are chained";

export const STOP_POLICIES = ["auto", "always", "never"] as const;
/** Whether a stopping installer removes what it installed; `auto` asks the API server if its DaemonSet is gone. */
export type StopPolicy = (typeof STOP_POLICIES)[number];

/** The repair controller's port on the pod. */
export const REPAIR_PORT = 9990;

/** The NRI plugin's port on its pod. */
export const NRI_PORT = 9992;

/** HTTP paths of the installer, the NRI plugin and the repair controller. */
export const AdminPath = { live: "/live", ready: "/ready", metrics: "/metrics" } as const;

/** The installer's log messages about the API server, which the command line searches for. */
export const ApiReach = {
  lost: "this node cannot reach the API server",
  regained: "this node reaches the API server again",
} as const;

/** HTTP paths of the operator, as in linkerd's. */
export const OperatorPath = {
  live: "/healthz",
  ready: "/readyz",
  metrics: AdminPath.metrics,
  /** Reviews of pods. */
  webhook: "/annotate-multus-v1-pod",
} as const;

/** The operator's Service, called by the API server. */
export const WEBHOOK_SERVICE = `${MULTUS_NAME}-webhook`;
/** The Secret with the certificate that the operator makes. */
export const WEBHOOK_SECRET = `${WEBHOOK_SERVICE}-tls`;

/** Labels of Linkerd and of Kubernetes. */
export const Label = {
  /** On every meshed pod. */
  controlPlaneNamespace: "linkerd.io/control-plane-ns",
  /** On the pods of the control plane. */
  controlPlaneComponent: "linkerd.io/control-plane-component",
  /** On a namespace: `disabled` excludes it from Linkerd's webhooks. */
  admissionWebhooks: "config.linkerd.io/admission-webhooks",
  /** On every resource of the chart linkerd2-cni. */
  cniResource: "linkerd.io/cni-resource",
  app: "k8s-app",
  name: "app.kubernetes.io/name",
  managedBy: "app.kubernetes.io/managed-by",
  os: "kubernetes.io/os",
} as const;

/** Key of the startup taint, which the installer removes. */
export const STARTUP_TAINT = "linkerd.io/cni-not-ready";

/** Annotations of Linkerd, Kubernetes, Multus and OpenShift. */
export const Annotation = {
  createdBy: "linkerd.io/created-by",
  inject: "linkerd.io/inject",
  proxyVersion: "linkerd.io/proxy-version",
  /** On a namespace: `enabled` asks the operator for a definition. */
  multus: "linkerd.io/multus",
  proxyUid: "config.linkerd.io/proxy-uid",
  /** The annotation with the networks to which Multus attaches a pod. */
  networks: "k8s.v1.cni.cncf.io/networks",
  /** On a namespace: the range of user ids of its pods, `FIRST/SIZE`. */
  uidRange: "openshift.io/sa.scc.uid-range",
  /** A JSON list of NRI plugins without which the runtime's validator refuses the pod's containers. */
  requiredPlugins: "required-plugins.noderesource.dev",
  /** On the mirror of a static pod. */
  mirror: "kubernetes.io/config.mirror",
} as const;

/** The value of {@link Annotation.multus} that asks for a definition. */
export const ENABLED = "enabled";
/** The values of {@link Annotation.inject} that ask for a proxy. */
export const INJECT_MODES: readonly string[] = [ENABLED, "ingress"];

/** The prefix of the annotations that change the redirect. */
export const SETTING_PREFIX = "config.linkerd.io/";

/** The NetworkAttachmentDefinition of the operator, one in each meshed namespace. */
export const NetworkDefinition = {
  group: "k8s.cni.cncf.io",
  apiVersion: "k8s.cni.cncf.io/v1",
  kind: "NetworkAttachmentDefinition",
  name: CNI_NAME,
} as const;
