import { z } from "zod";
import { Annotation, CHAININGS, NodePath, REPAIR_PORT, STOP_POLICIES } from "../cni/contract";
import { MAX_PORT } from "../cni/ports";
import { IPTABLES_MODES, LOG_LEVELS, POD_LOOKUPS } from "../cni/stanza";
import { flag, integer, numberOrText } from "../helm/loose-types";
import { monitoring } from "./monitoring/values";
import { DEFAULT_DIRECTORIES, PLATFORM_NAMES } from "./platforms";
import { pluginToken } from "./plugin-token";
import { nodeTaint } from "./taint";
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
} from "./value-groups";
import {
  directory,
  directoryOrNothing,
  labels,
  port,
  portRanges,
  ports,
  priorityClassName,
  shareOrNothing,
  textMap,
} from "./value-types";

const nodeRequirement = z.strictObject({
  key: z.string().meta({ description: "Name of the label or field" }),
  operator: z
    .enum(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
    .meta({ description: "How it is compared with `values`" }),
  values: z
    .array(z.string())
    .optional()
    .meta({ description: "Values to compare with; one number for Gt and Lt, none for Exists and DoesNotExist" }),
});

const nodeTerm = z.strictObject({
  matchExpressions: z.array(nodeRequirement).optional().meta({ description: "Conditions on the node's labels" }),
  matchFields: z.array(nodeRequirement).optional().meta({ description: "Conditions on the node's fields" }),
});

const nodeAffinity = z.strictObject({
  requiredDuringSchedulingIgnoredDuringExecution: z
    .strictObject({
      nodeSelectorTerms: z.array(nodeTerm).meta({ description: "Terms of which a node must meet at least one" }),
    })
    .optional()
    .meta({ description: "Nodes that pods may run on" }),
  preferredDuringSchedulingIgnoredDuringExecution: z
    .array(
      z.strictObject({
        preference: nodeTerm.meta({ description: "Conditions of the preference" }),
        weight: z.int().min(1).max(100).meta({ description: "Weight of the preference, 1 to 100" }),
      }),
    )
    .optional()
    .meta({ description: "Nodes that pods run on if they can" }),
});

/** A Kubernetes container: only its name and image are checked here, the API server checks the rest. */
const container = z.looseObject({
  name: z.string().min(1).meta({ description: "Name of the container" }),
  image: z.string().min(1).meta({ description: "Image of the container" }),
});

const updateStrategy = group("Update strategy of the DaemonSet", {
  type: z
    .enum(["RollingUpdate", "OnDelete"])
    .default("RollingUpdate")
    .meta({ description: "How pods are replaced when the DaemonSet changes" }),
  rollingUpdate: group("Pace of a rolling update", {
    maxSurge: shareOrNothing()
      .default("")
      .meta({
        description:
          "On how many nodes the new pod starts before the old one ends, as a number or a percentage; empty means 1, or 0 " +
          "with maxUnavailable or with hostNetwork, where both pods need the same ports",
        examples: ["25%"],
      }),
    maxUnavailable: shareOrNothing()
      .default("")
      .meta({
        description:
          "On how many nodes the old pod ends before the new one starts, as a number or a percentage; empty means 0, or 1 " +
          "if maxSurge is 0",
        examples: ["25%"],
      }),
  }),
});

const seLinuxOptions = z.strictObject({
  level: z.string().optional().meta({ description: "SELinux level" }),
  role: z.string().optional().meta({ description: "SELinux role" }),
  type: z.string().optional().meta({ description: "SELinux type" }),
  user: z.string().optional().meta({ description: "SELinux user" }),
});

/** Kubernetes' field of this name. */
const appArmorProfile = z.strictObject({
  type: z
    .enum(["RuntimeDefault", "Unconfined", "Localhost"])
    .meta({ description: "The container runtime's profile, none, or one that is loaded on the node" }),
  localhostProfile: z.string().optional().meta({ description: "Name of the profile on the node, for type Localhost" }),
});

const rbac = group("Permissions of the installer", {
  minimal: flag()
    .default(false)
    .meta({
      description:
        "Grant only what this plugin uses: reading single pods, namespaces and nodes, the service `kubernetes`, and its own " +
        "DaemonSet",
    }),
});

const resourceQuota = group("ResourceQuota for the priority class", {
  create: z
    .enum(["auto", "always", "never"])
    .default("auto")
    .meta({
      description:
        "Whether to create a ResourceQuota, without which clusters such as GKE's admit pods of a `system-` priority class " +
        "in kube-system only: `auto` with such a priorityClassName outside kube-system; `always` with any " +
        "priorityClassName; `never`",
    }),
  pods: integer(1, 1_000_000).default(5000).meta({ description: "How many pods this ResourceQuota allows" }),
});

const nri = group("NRI plugin", {
  enabled: flag()
    .default(false)
    .meta({
      description:
        "Run the NRI plugin as a second DaemonSet: it sets the redirect where the chain did not, also in place for pods that " +
        "run already; needs containerd 2.0, CRI-O 1.30 or another runtime with NRI, and iptablesMode auto or native",
    }),
  socketDir: directory()
    .default(NodePath.nriDir)
    .meta({ description: "Directory on the node with the container runtime's socket nri.sock" }),
  netnsDir: directory()
    .default(NodePath.netnsDir)
    .meta({ description: "Directory on the node where the container runtime mounts the network namespaces of pods" }),
  // Early, so that the redirect covers what other plugins do in a pod's network; lower indexes remain for plugins that
  // must run first.
  index: numberOrText(
    z
      .string()
      .regex(/^[0-9]{2}$/, "is not an index of two digits such as 10")
      .meta({ minimum: 10, maximum: 99, multipleOf: 1 }),
  )
    .default("10")
    .meta({
      description: "Place of the NRI plugin among others, two digits; the runtime calls plugins in this order",
      examples: ["10"],
    }),
  require: group("Containers without the NRI plugin's redirect", {
    admissionPolicy: z
      .enum(["", "v1beta1", "v1"])
      .default("")
      .meta({
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
  admissionPolicy: z
    .enum(["", "v1beta1", "v1"])
    .default("")
    .meta({
      description:
        "Create a MutatingAdmissionPolicy of this API version that annotates pods to be injected with a user id of their " +
        `namespace's \`${Annotation.uidRange}\`: the first plus 2102, or the first. Empty creates none; the operator of ` +
        "chart linkerd-multus does the same by its webhook",
    }),
});

const helmTest = group("Pod of `helm test`", {
  enabled: flag().default(true).meta({
    description: "Render the pod of `helm test`; set false where something else than Helm applies the manifests",
  }),
  tolerations: z
    .array(toleration)
    .default([{ key: "node-role.kubernetes.io/control-plane", operator: "Exists" }])
    .meta({
      description: "Tolerations of the pod that `helm test` creates; it finds out whether the plugin redirects pods",
    }),
});

const networkPolicy = group("NetworkPolicy for the pods", {
  enabled: flag().default(false).meta({
    description: "Create a NetworkPolicy that allows only connections to the probe and metrics ports of the pods",
  }),
  from: z
    .array(peer)
    .default([])
    .meta({
      description: "NetworkPolicy peers that may connect to these ports; empty for everyone",
      examples: [[{ namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "monitoring" } } }]],
    }),
});

const repairController = group("Repair controller", {
  enabled: flag().default(false).meta({
    description: "Run the repair controller, which replaces pods that started before the plugin was in place",
  }),
  logLevel: z.enum(LOG_LEVELS).default("info").meta({ description: "Log level of the repair controller" }),
  logFormat: z.enum(["plain", "json"]).default("plain").meta({ description: "Log format of the repair controller" }),
  enableSecurityContext: flag()
    .default(true)
    .meta({ description: "Give the repair controller's container a security context" }),
  deletionsPerSecond: integer(1, 1000).default(1).meta({
    description: "Maximum number of pods per second that the repair controller of a node deletes",
  }),
  deletionBurst: integer(1, 1000).default(10).meta({
    description: "How many pods it may delete in a burst, before deletionsPerSecond applies",
  }),
  deleteUnowned: flag()
    .default(false)
    .meta({ description: "Also delete broken pods that no controller replaces, as linkerd's repair controller does" }),
  deleteUnvalidated: flag()
    .default(false)
    .meta({ description: "Ignored: pods without a redirect that have no validator are reported, not evicted" }),
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
export const values = z.strictObject({
  inboundProxyPort: port().default(4143).meta({ description: "Port on which the proxy accepts inbound connections" }),
  outboundProxyPort: port().default(4140).meta({ description: "Port on which the proxy accepts outbound connections" }),
  proxyAdminPort: port().default(4191).meta({ description: "The proxy's admin port; inbound, it is not redirected" }),
  proxyControlPort: port()
    .default(4190)
    .meta({ description: "The proxy's control port (tap); inbound, it is not redirected" }),
  ignoreInboundPorts: portRanges()
    .default("")
    .meta({
      description: "Inbound ports and ranges that are not redirected, comma-separated",
      examples: ["25,587,8000-8100"],
    }),
  ignoreOutboundPorts: portRanges()
    .default("")
    .meta({
      description: "Outbound ports and ranges that are not redirected, comma-separated",
      examples: ["25,3306"],
    }),
  portsToRedirect: ports()
    .default("")
    .meta({
      description: "Inbound ports that are redirected, comma-separated; empty for all",
      examples: ["8080,9090"],
    }),
  proxyUID: integer(1, 2147483647)
    .default(2102)
    .meta({ description: "User id of the proxy; 0 is refused, because the proxy's own traffic would loop" }),
  proxyGID: integer(-2147483648, 2147483647)
    .default(-1)
    .meta({ description: "Group id of the proxy; a negative number means no rule for it", examples: [2102] }),
  logLevel: z.enum(LOG_LEVEL_NAMES).default("info").meta({ description: "Log level of the plugin and the installer" }),
  platform: z
    .enum(["", ...PLATFORM_NAMES])
    .default("")
    .meta({
      description:
        "Preset for a Kubernetes platform as it is usually installed: the two directories of its nodes, and the SELinux " +
        "context and security context constraint that it needs; values that you set win. `l5d-cni check --pre` names yours",
      examples: ["gke"],
    }),
  destCNINetDir: directoryOrNothing()
    .default("")
    .meta({
      description: `Directory from which the nodes' container runtime reads the CNI configuration (confDir in crictl info); empty for the platform's, else ${DEFAULT_DIRECTORIES.destCNINetDir}`,
      examples: ["/etc/cni/net.d"],
    }),
  chained: flag()
    .default(true)
    .meta({
      description:
        "Add the plugin to the nodes' CNI configuration; false if only Multus calls it (chart linkerd-multus), or if " +
        "the NRI plugin alone redirects (nri.enabled)",
    }),
  chaining: z
    .enum(CHAININGS)
    .default("auto")
    .meta({
      description:
        "How the plugin is added: `dropin`: by a file of its own beside the node's CNI configuration, which stays as it is; " +
        "`edit`: in that file; `auto`: by a drop-in if the container runtime reads it (containerd 2.1, CRI-O 1.34), else by " +
        "an edit, and on platform openshift as `auxiliary`; `auxiliary`: in the auxiliary chain of Multus, which then calls " +
        "the plugin for every pod. After a boot at which the primary CNI writes its file again, an edit is missing until " +
        "the installer runs; a drop-in is not",
      examples: ["edit"],
    }),
  multus: group("Multus on the nodes", {
    auxiliaryChainDir: directory()
      .default(NodePath.auxiliaryChainDir)
      .meta({
        description:
          "With chaining `auxiliary`: the folder on the node with the auxiliary chain, named by auxiliaryCNIChainName of " +
          "Multus' daemon and beside its clusterNetwork; the default is OpenShift's",
        examples: ["/etc/cni/net.d/CHAIN"],
      }),
  }),
  destCNIBinDir: directoryOrNothing()
    .default("")
    .meta({
      description: `Directory in which the nodes' container runtime looks for CNI plugins (binDir in crictl info), with those of the primary CNI; empty for the platform's, else ${DEFAULT_DIRECTORIES.destCNIBinDir}`,
      examples: ["/var/lib/cni/bin"],
    }),
  multipleCNIBinDirs: flag()
    .default(false)
    .meta({
      description:
        "The container runtime searches several directories for plugins (bin_dirs of containerd, plugin_dirs of CRI-O), " +
        "destCNIBinDir among them. By default the installer chains the plugin only if destCNIBinDir holds all other plugins " +
        "of the chain",
    }),
  useWaitFlag: flag().default(false).meta({
    description:
      "Wait for the xtables lock (`-w`) in modes nft, legacy and plain; `native` takes none, `auto` waits in any case",
  }),
  iptablesMode: z
    .enum(IPTABLES_MODES)
    .default("auto")
    .meta({
      description:
        "How the rules are programmed: `native` over netlink without any program of the host, " +
        "`nft`, `legacy` and `plain` by the host's iptables, `auto` by what the host has",
    }),
  disableIPv6: flag().default(true).meta({ description: "Program rules for IPv4 only" }),
  podLookup: z
    .enum(POD_LOOKUPS)
    .default("auto")
    .meta({
      description:
        "Which pods the plugin asks the API server about if the runtime passes their annotations: `auto`: meshed pods; " +
        "`annotations`: only meshed pods that linkerd's injector did not make; `api`: all pods",
    }),
  strictStatus: flag()
    .default(false)
    .meta({
      description:
        "Report the node as not ready (CNI STATUS) while the plugin's credentials do not work, or its kernel is too old " +
        "for iptablesMode",
    }),
  healthPort: integer(0, MAX_PORT)
    .default(9991)
    .meta({
      description:
        "Port of the installer's probes (/live, /ready) and /metrics. 0 turns them off: a pod then counts as ready before " +
        `it has installed the plugin, and the repair controller (port ${REPAIR_PORT}) does not wait for the installer`,
    }),
  uninstallOnStop: z
    .enum(STOP_POLICIES)
    .default("auto")
    .meta({
      description:
        "Whether a stopping installer removes the plugin from its node: `auto` if its DaemonSet is gone, so that updates " +
        "leave nodes alone; `always`; `never`",
    }),
  pluginLog: flag().default(true).meta({
    description: "Mount the node's runDir, so that the installer shows the plugin's log in its own",
  }),
  runDir: directory()
    .max(90)
    .default(NodePath.runDir)
    .meta({
      description:
        "Directory on the node of the plugin's log and the installer's socket; another one for each of several " +
        "Kubernetes distributions on a host",
      examples: ["/run/k3s/linkerd-cni"],
    }),
  hostNetwork: flag().default(false).meta({ description: "Run the pods in the node's network namespace" }),
  priorityClassName: priorityClassName()
    .default("")
    .meta({
      description: "Priority class of the pods; recommended where the namespace may use it: system-node-critical",
      examples: ["system-node-critical"],
    }),
  resourceQuota,
  revisionHistoryLimit: integer(0, 2147483647)
    .default(10)
    .meta({ description: "How many old revisions of the DaemonSet are kept" }),
  updateStrategy,
  privileged: flag().default(false).meta({
    description: "Run the installer's container privileged; needed where SELinux denies writing to the directories",
  }),
  seLinuxOptions: seLinuxOptions.optional().meta({
    description:
      "SELinux context of the installer's container, as an alternative to `privileged`, and of the NRI plugin's; without " +
      "one, the platform's",
    examples: [{ type: "spc_t" }],
  }),
  appArmorProfile: appArmorProfile.optional().meta({
    description:
      "AppArmor profile of the pods, from Kubernetes 1.30 on; before, set `podAnnotations`. Without one, the container " +
      "runtime's default",
    examples: [{ type: "RuntimeDefault" }],
  }),
  rbac,
  pluginToken,
  networkPolicy,
  namespaceUIDRange,
  helmTest,
  nodeTaint,
  ...monitoring,
  tolerations: z
    .array(toleration)
    .default([{ operator: "Exists" }])
    .meta({ description: "Tolerations of the pods; the plugin is needed on every node that runs meshed pods" }),
  nodeSelector: labels()
    .default({})
    .meta({ description: "Labels of the nodes that the pods may run on, besides kubernetes.io/os: linux" }),
  nodeAffinity: nodeAffinity.optional().meta({ description: "Node affinity of the pods; replaces that in `affinity`" }),
  affinity: z.record(z.string(), z.unknown()).default({}).meta({ description: "Affinity of the pods" }),
  image: image(),
  imagePullSecrets: imagePullSecrets(),
  extraInitContainers: z
    .array(container)
    .default([])
    .meta({ description: "Containers that run to their end before the installer starts" }),
  extraEnv: extraEnv("the installer, the repair controller and the NRI plugin"),
  extraObjects: extraObjects(),
  // The time that the installer needs to find out why it stops and to restore the node.
  terminationGracePeriodSeconds: terminationGracePeriodSeconds(30),
  podAnnotations: textMap()
    .default({})
    .meta({
      description: "Annotations of the pods, besides the chart's own",
      examples: [{ "prometheus.io/scrape": "true" }],
    }),
  podLabels: labels().default({}).meta({ description: "Labels of the pods, besides the chart's own" }),
  commonLabels: labels().default({}).meta({ description: "Labels of every resource, besides the chart's own" }),
  repairController,
  resources: resources(),
  nri,
});
