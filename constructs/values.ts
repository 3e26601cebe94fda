import { Annotation, CHAININGS, NodePath, REPAIR_PORT, STOP_POLICIES } from "../cni/contract";
import { MAX_PORT } from "../cni/ports";
import { IPTABLES_MODES, LOG_FORMATS, LOG_LEVELS, POD_LOOKUPS, ProxyDefault } from "../cni/stanza";
import { group, value, valuesOf } from "../helm/index";
import { MUTATING_POLICY_VERSIONS } from "./admission";
import { monitoring } from "./monitoring/values";
import { DEFAULT_DIRECTORIES, PLATFORM_NAMES } from "./platforms";
import { nodeTaint } from "./taint";
import {
  addedMetadata,
  DIRECTORY,
  DIRECTORY_OR_NOTHING,
  extraEnv,
  extraObjects,
  image,
  imagePullSecrets,
  networkPolicyGroup,
  nodeSelector,
  PORT_NUMBERS,
  PORT_RANGES,
  PORTS,
  PRIORITY_CLASS,
  resources,
  SHARE_OR_NOTHING,
  terminationGracePeriodSeconds,
  toleration,
} from "./value-groups";

const nodeRequirement = {
  key: value.string({ required: true, description: "Name of the label or field" }),
  operator: value.choice(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"], {
    required: true,
    description: "How it is compared with `values`",
  }),
  values: value.texts({
    description: "Values to compare with; one number for Gt and Lt, none for Exists and DoesNotExist",
  }),
};

const nodeTerm = {
  matchExpressions: value.list({ members: nodeRequirement, description: "Conditions on the node's labels" }),
  matchFields: value.list({ members: nodeRequirement, description: "Conditions on the node's fields" }),
};

const nodeAffinity = {
  requiredDuringSchedulingIgnoredDuringExecution: value.object({
    members: {
      nodeSelectorTerms: value.list({
        members: nodeTerm,
        required: true,
        description: "Terms of which a node must meet at least one",
      }),
    },
    description: "Nodes that pods may run on",
  }),
  preferredDuringSchedulingIgnoredDuringExecution: value.list({
    members: {
      preference: value.object({ members: nodeTerm, required: true, description: "Conditions of the preference" }),
      weight: value.integer({
        min: 1,
        max: 100,
        isStrict: true,
        required: true,
        description: "Weight of the preference, 1 to 100",
      }),
    },
    description: "Nodes that pods run on if they can",
  }),
};

/** A Kubernetes container: only its name and image are checked here, the API server checks the rest. */
const container = {
  name: value.string({ notEmpty: true, required: true, description: "Name of the container" }),
  image: value.string({ notEmpty: true, required: true, description: "Image of the container" }),
};

const updateStrategy = group("Update strategy of the DaemonSet", {
  type: value.choice(["RollingUpdate", "OnDelete"], {
    default: "RollingUpdate",
    description: "How pods are replaced when the DaemonSet changes",
  }),
  rollingUpdate: group("Pace of a rolling update", {
    maxSurge: value.numericString({
      ...SHARE_OR_NOTHING,
      default: "",
      description:
        "On how many nodes the new pod starts before the old one ends, as a number or a percentage; empty means 1, or 0 " +
        "with maxUnavailable or with hostNetwork, where both pods need the same ports",
      examples: ["25%"],
    }),
    maxUnavailable: value.numericString({
      ...SHARE_OR_NOTHING,
      default: "",
      description:
        "On how many nodes the old pod ends before the new one starts, as a number or a percentage; empty means 0, or 1 " +
        "if maxSurge is 0",
      examples: ["25%"],
    }),
  }),
});

const seLinuxOptions = {
  level: value.string({ description: "SELinux level" }),
  role: value.string({ description: "SELinux role" }),
  type: value.string({ description: "SELinux type" }),
  user: value.string({ description: "SELinux user" }),
};

/** Kubernetes' field of this name. */
const appArmorProfile = {
  type: value.choice(["RuntimeDefault", "Unconfined", "Localhost"], {
    required: true,
    description: "The container runtime's profile, none, or one that is loaded on the node",
  }),
  localhostProfile: value.string({ description: "Name of the profile on the node, for type Localhost" }),
};

const rbac = group("Permissions of the installer", {
  minimal: value.boolean({
    default: false,
    description:
      "Grant only what this plugin uses: reading single pods, namespaces and nodes, the service `kubernetes`, and its own " +
      "DaemonSet",
  }),
});

const resourceQuota = group("ResourceQuota for the priority class", {
  create: value.choice(["auto", "always", "never"], {
    default: "auto",
    description:
      "Whether to create a ResourceQuota, without which clusters such as GKE's admit pods of a `system-` priority class " +
      "in kube-system only: `auto` with such a priorityClassName outside kube-system; `always` with any " +
      "priorityClassName; `never`",
  }),
  pods: value.integer({
    min: 1,
    max: 1_000_000,
    default: 5000,
    description: "How many pods this ResourceQuota allows",
  }),
});

const nri = group("NRI plugin", {
  enabled: value.boolean({
    default: false,
    description:
      "Run the NRI plugin as a second DaemonSet: it sets the redirect where the chain did not, also in place for pods that " +
      "run already; needs containerd 2.0, CRI-O 1.30 or another runtime with NRI, and iptablesMode auto or native",
  }),
  socketDir: value.string({
    ...DIRECTORY,
    default: NodePath.nriDir,
    description: "Directory on the node with the container runtime's socket nri.sock",
  }),
  netnsDir: value.string({
    ...DIRECTORY,
    default: NodePath.netnsDir,
    description: "Directory on the node where the container runtime mounts the network namespaces of pods",
  }),
  // Early, so that the redirect covers what other plugins do in a pod's network; lower indexes remain for plugins that
  // must run first.
  index: value.numericString({
    pattern: /^[0-9]{2}$/,
    wrong: "is not an index of two digits such as 10",
    number: { minimum: 10, maximum: 99, multipleOf: 1 },
    default: "10",
    description: "Index of the NRI plugin, two digits; the runtime calls plugins in this order",
    examples: ["10"],
  }),
  require: group("Containers without the NRI plugin's redirect", {
    admissionPolicy: value.choice(["", ...MUTATING_POLICY_VERSIONS], {
      default: "",
      description:
        "Create a MutatingAdmissionPolicy of this API version that annotates meshed pods with " +
        "`required-plugins.noderesource.dev`: a runtime with NRI's default validator switched on then refuses their " +
        "containers while the NRI plugin is not connected. Empty creates none",
    }),
  }),
  // All pod starts of the node wait for it, for at most 2 s. A container without a request would get CPU last on a busy
  // node. It uses 2 MiB, and ten times that for messages of maximum length.
  resources: resources({ cpu: "50m", memory: "32Mi" }),
});

const namespaceUIDRange = group("User ids of proxies where each namespace has a range of them (OpenShift)", {
  admissionPolicy: value.choice(["", ...MUTATING_POLICY_VERSIONS], {
    default: "",
    description:
      "Create a MutatingAdmissionPolicy of this API version that annotates pods to be injected with a user id of their " +
      `namespace's \`${Annotation.uidRange}\`: the first plus 2102, or the first. Empty creates none; the operator of ` +
      "chart linkerd-multus does the same by its webhook",
  }),
});

const helmTest = group("Pod of `helm test`", {
  enabled: value.boolean({
    default: true,
    description: "Render the pod of `helm test`; set it to false if a tool other than Helm applies the manifests",
  }),
  tolerations: value.list({
    members: toleration,
    default: [{ key: "node-role.kubernetes.io/control-plane", operator: "Exists" }],
    description: "Tolerations of the pod that `helm test` creates; it finds out whether the plugin redirects pods",
  }),
});

const repairController = group("Repair controller", {
  enabled: value.boolean({
    default: false,
    description: "Run the repair controller, which replaces pods that started before the plugin was in place",
  }),
  logLevel: value.choice(LOG_LEVELS, { default: "info", description: "Log level of the repair controller" }),
  logFormat: value.choice(LOG_FORMATS, { default: "plain", description: "Log format of the repair controller" }),
  enableSecurityContext: value.boolean({
    default: true,
    description: "Give the repair controller's container a security context",
  }),
  deletionsPerSecond: value.integer({
    min: 1,
    max: 1000,
    default: 1,
    description: "Maximum number of pods per second that the repair controller of a node deletes",
  }),
  deletionBurst: value.integer({
    min: 1,
    max: 1000,
    default: 10,
    description: "How many pods it may delete in a burst, before deletionsPerSecond applies",
  }),
  deleteUnowned: value.boolean({
    default: false,
    description: "Also delete broken pods that no controller replaces, as linkerd's repair controller does",
  }),
  deleteUnvalidated: value.boolean({
    default: false,
    description: "Ignored: pods without a redirect that have no validator are reported, not evicted",
  }),
  resources: resources(),
});

/** The levels of logrus, which linkerd's plugin uses; levels above error are shown by name. */
const LOG_LEVEL_NAMES = [...LOG_LEVELS, "warning", "fatal", "panic"] as const;

/**
 * Values of linkerd's chart and of this one, current or former, that this chart ignores: the reason by name. `helm upgrade
 * --reuse-values` keeps them.
 */
export const FORMER_VALUES: Readonly<Record<string, string>> = {
  partials: "values of a library of linkerd's charts",
  pluginToken: "the plugin has no token, because it asks the installer",
  podEvents: "the kubelet publishes an Event with the plugin's message",
  namespace: "the release's namespace is used (helm install --namespace)",
  installNamespace: "helm makes the namespace (helm install --create-namespace)",
  cniPluginImage: "image.name is used",
  cniPluginVersion: "image.version is used",
  cniResourceLabel: "the label is linkerd.io/cni-resource",
  createdByAnnotation: "the annotation is linkerd.io/created-by",
  proxyInjectAnnotation: "the annotation is linkerd.io/inject",
  proxyInjectDisabled: "the annotation linkerd.io/inject is disabled",
  enablePSP: "Kubernetes 1.25 removed PodSecurityPolicy",
};

/** Every value of the chart: its type, default and description. Everything else about values is derived from it. */
export const values = valuesOf({
  inboundProxyPort: value.integer({
    ...PORT_NUMBERS,
    default: ProxyDefault.inboundPort,
    description: "Port on which the proxy accepts inbound connections",
  }),
  outboundProxyPort: value.integer({
    ...PORT_NUMBERS,
    default: ProxyDefault.outboundPort,
    description: "Port on which the proxy accepts outbound connections",
  }),
  proxyAdminPort: value.integer({
    ...PORT_NUMBERS,
    default: 4191,
    description: "The proxy's admin port; inbound, it is not redirected",
  }),
  proxyControlPort: value.integer({
    ...PORT_NUMBERS,
    default: 4190,
    description: "The proxy's control port (tap); inbound, it is not redirected",
  }),
  ignoreInboundPorts: value.numericString({
    ...PORT_RANGES,
    default: "",
    description: "Inbound ports and ranges that are not redirected, comma-separated",
    examples: ["25,587,8000-8100"],
  }),
  ignoreOutboundPorts: value.numericString({
    ...PORT_RANGES,
    default: "",
    description: "Outbound ports and ranges that are not redirected, comma-separated",
    examples: ["25,3306"],
  }),
  portsToRedirect: value.numericString({
    ...PORTS,
    default: "",
    description: "Inbound ports that are redirected, comma-separated; empty for all",
    examples: ["8080,9090"],
  }),
  proxyUID: value.integer({
    min: 1,
    max: 2147483647,
    default: ProxyDefault.uid,
    description: "User id of the proxy; 0 is refused, because the proxy's own traffic would loop",
  }),
  proxyGID: value.integer({
    min: -2147483648,
    max: 2147483647,
    default: -1,
    description: "Group id of the proxy; a negative number means no rule for it",
    examples: [ProxyDefault.uid],
  }),
  logLevel: value.choice(LOG_LEVEL_NAMES, {
    default: "info",
    description: "Log level of the plugin and the installer",
  }),
  platform: value.choice(["", ...PLATFORM_NAMES], {
    default: "",
    description:
      "Preset for a Kubernetes platform as it is usually installed: the two directories of its nodes, and the SELinux " +
      "context and security context constraint that it needs; values that you set win. `l5d-cni check --pre` names yours",
    examples: ["gke"],
  }),
  destCNINetDir: value.string({
    ...DIRECTORY_OR_NOTHING,
    default: "",
    description: `Directory from which the nodes' container runtime reads the CNI configuration (confDir in crictl info); empty for the platform's, else ${DEFAULT_DIRECTORIES.destCNINetDir}`,
    examples: ["/etc/cni/net.d"],
  }),
  chained: value.boolean({
    default: true,
    description:
      "Add the plugin to the nodes' CNI configuration; false if only Multus calls it (chart linkerd-multus), or if " +
      "the NRI plugin alone redirects (nri.enabled)",
  }),
  chaining: value.choice(CHAININGS, {
    default: "auto",
    description:
      "How the plugin is added: `dropin`: by a file of its own beside the node's CNI configuration, which stays as it is; " +
      "`edit`: in that file; `auto`: by a drop-in if the container runtime reads it (containerd 2.1, CRI-O 1.34), else by " +
      "an edit, and on platform openshift as `auxiliary`; `auxiliary`: in the auxiliary chain of Multus, which then calls " +
      "the plugin for every pod. After a boot at which the primary CNI writes its file again, an edit is missing until " +
      "the installer runs; a drop-in is not",
    examples: ["edit"],
  }),
  multus: group("Multus on the nodes", {
    auxiliaryChainDir: value.string({
      ...DIRECTORY,
      default: NodePath.auxiliaryChainDir,
      description:
        "With chaining `auxiliary`: the folder on the node with the auxiliary chain, named by auxiliaryCNIChainName of " +
        "Multus' daemon and beside its clusterNetwork; the default is OpenShift's",
      examples: ["/etc/cni/net.d/CHAIN"],
    }),
  }),
  destCNIBinDir: value.string({
    ...DIRECTORY_OR_NOTHING,
    default: "",
    description: `Directory in which the nodes' container runtime looks for CNI plugins (binDir in crictl info), with those of the primary CNI; empty for the platform's, else ${DEFAULT_DIRECTORIES.destCNIBinDir}`,
    examples: ["/var/lib/cni/bin"],
  }),
  multipleCNIBinDirs: value.boolean({
    default: false,
    description:
      "The container runtime searches several directories for plugins (bin_dirs of containerd, plugin_dirs of CRI-O), " +
      "destCNIBinDir among them. By default the installer chains the plugin only if destCNIBinDir holds all other plugins " +
      "of the chain",
  }),
  useWaitFlag: value.boolean({
    default: false,
    description:
      "Wait for the xtables lock (`-w`) in modes nft, legacy and plain; `native` takes none, `auto` waits in any case",
  }),
  iptablesMode: value.choice(IPTABLES_MODES, {
    default: "auto",
    description:
      "How the rules are programmed: `native` over netlink without any program of the host, " +
      "`nft`, `legacy` and `plain` by the host's iptables, `auto` by what the host has",
  }),
  disableIPv6: value.boolean({ default: true, description: "Program rules for IPv4 only" }),
  podLookup: value.choice(POD_LOOKUPS, {
    default: "auto",
    description:
      "Which pods the plugin asks the API server about if the runtime passes their annotations: `auto`: meshed pods; " +
      "`annotations`: only meshed pods that linkerd's injector did not make; `api`: all pods",
  }),
  strictStatus: value.boolean({
    default: false,
    description:
      "Report the node as not ready (CNI STATUS) while the plugin's configuration is invalid, or the kernel is too old for " +
      "iptablesMode",
  }),
  healthPort: value.integer({
    min: 0,
    max: MAX_PORT,
    default: 9991,
    description:
      "Port of the installer's probes (/live, /ready) and /metrics. 0 turns them off: a pod then counts as ready before " +
      `it has installed the plugin, and the repair controller (port ${REPAIR_PORT}) does not wait for the installer`,
  }),
  uninstallOnStop: value.choice(STOP_POLICIES, {
    default: "auto",
    description:
      "Whether a stopping installer removes the plugin from its node: `auto` if its DaemonSet is gone, so that updates " +
      "leave nodes alone; `always`; `never`",
  }),
  pluginLog: value.boolean({
    default: true,
    description: "Show the plugin's log in the installer's",
  }),
  runDir: value.string({
    ...DIRECTORY,
    maxLength: 90,
    default: NodePath.runDir,
    description:
      "Directory on the node of the plugin's log and the installer's socket; another one for each of several " +
      "Kubernetes distributions on a host",
    examples: ["/run/k3s/linkerd-cni"],
  }),
  hostNetwork: value.boolean({ default: false, description: "Run the pods in the node's network namespace" }),
  priorityClassName: value.string({
    ...PRIORITY_CLASS,
    default: "",
    description: "Priority class of the pods; recommended where the namespace may use it: system-node-critical",
    examples: ["system-node-critical"],
  }),
  resourceQuota,
  revisionHistoryLimit: value.integer({
    min: 0,
    max: 2147483647,
    default: 10,
    description: "How many old revisions of the DaemonSet are kept",
  }),
  updateStrategy,
  privileged: value.boolean({
    default: false,
    description: "Run the installer's container privileged; needed where SELinux denies writing to the directories",
  }),
  seLinuxOptions: value.object({
    members: seLinuxOptions,
    description:
      "SELinux context of the installer's container, as an alternative to `privileged`, and of the NRI plugin's; without " +
      "one, the platform's",
    examples: [{ type: "spc_t" }],
  }),
  appArmorProfile: value.object({
    members: appArmorProfile,
    description:
      "AppArmor profile of the pods, from Kubernetes 1.30 on; before, set `podAnnotations`. Without one, the container " +
      "runtime's default",
    examples: [{ type: "RuntimeDefault" }],
  }),
  rbac,
  networkPolicy: networkPolicyGroup(
    " that allows only connections to the probe and metrics ports of the pods",
    "these ports",
  ),
  namespaceUIDRange,
  helmTest,
  nodeTaint,
  ...monitoring,
  tolerations: value.list({
    members: toleration,
    default: [{ operator: "Exists" }],
    description: "Tolerations of the pods; the plugin is needed on every node that runs meshed pods",
  }),
  nodeSelector,
  nodeAffinity: value.object({
    members: nodeAffinity,
    description: "Node affinity of the pods; replaces that in `affinity`",
  }),
  affinity: value.object({ default: {}, description: "Affinity of the pods" }),
  image: image(),
  imagePullSecrets: imagePullSecrets(),
  extraInitContainers: value.list({
    members: container,
    isOpen: true,
    default: [],
    description: "Extra init containers of the installer's pods",
  }),
  extraVolumes: value.list({
    members: { name: value.string({ notEmpty: true, required: true, description: "Name of the volume" }) },
    isOpen: true,
    default: [],
    description: "Extra volumes of the installer's pods, for extraInitContainers",
    examples: [[{ name: "tools", emptyDir: {} }]],
  }),
  extraEnv: extraEnv("the installer, the repair controller and the NRI plugin"),
  extraObjects: extraObjects(),
  // The time that the installer needs to find out why it stops and to restore the node.
  terminationGracePeriodSeconds: terminationGracePeriodSeconds(30),
  podAnnotations: value.map({
    default: {},
    description: "Annotations of the pods, besides the chart's own",
    examples: [{ "prometheus.io/scrape": "true" }],
  }),
  ...addedMetadata,
  repairController,
  resources: resources(),
  nri,
});

/** The definition of the values. */
export type Values = typeof values;
