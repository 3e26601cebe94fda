import type { ApiObject } from "cdk8s";
import { k8s } from "cdk8s-plus-27";
import type { Construct, IConstruct } from "constructs";
import { AdminPath, Annotation, CNI_NAME, CONFIG_MAP, ConfigMapKey, Container, Label, NRI_NAME } from "../cni/contract";
import {
  and,
  assert,
  capabilities,
  define,
  entryOf,
  eq,
  HelmChart,
  type Input,
  matches,
  not,
  or,
  orElse,
  type Part,
  type Parts,
  type PropsOf,
  present,
  type Refs,
  sha256,
  type Templated,
  text,
  toJson,
  toPrettyJson,
  when,
} from "../helm/index";
import { overlaid } from "../helm/read";
import { Additions } from "./additions";
import { mutatingPolicy } from "./admission";
import { isServed } from "./container";
import { MESHED, TEST_HOOK, testPodSpec } from "./helm-test";
import { Installation, type InstallationProps, type Labels } from "./installation";
import { alertGroups } from "./monitoring/alerts";
import { dashboardFor, Monitoring, PodMonitor, scraping } from "./monitoring/monitoring";
import { networkPolicySpec } from "./network-policy";
import { LinkerdNri, NRI_PORT_NAME, NRI_SELECTOR, nriPodSpec, nriUpdateStrategy } from "./nri";
import { DEFAULT_DIRECTORIES, PLATFORM_NAMES, PLATFORMS } from "./platforms";
import { type Directories, type PodParts, podSpec, updateStrategy } from "./pod";
import { proxyUidPolicy } from "./proxy-uid";
import { binding, roleRules } from "./rbac";
import { type StanzaTemplate, stanzaOf } from "./stanza";
import { NodeTaint } from "./taint";
import { FORMER_VALUES, type Values, values } from "./values";
import { version } from "./version";

/** Kubernetes has a field for it since this version; before, an annotation for each container. */
const FIELD_SINCE = "1.30";
const ANNOTATION = `container.apparmor.security.beta.kubernetes.io/${Container.installer}`;
const TOO_OLD =
  `appArmorProfile: pods have this field from Kubernetes ${FIELD_SINCE} on; for this cluster set podAnnotations instead, ` +
  `such as ${ANNOTATION}: runtime/default`;

/**
 * The AppArmor profile of all containers of a pod, if one is given. The cluster's version is known only in Helm charts.
 */
function appArmorOf(scope: IConstruct, { appArmorProfile: profile }: Pick<Refs<Values>, "appArmorProfile">) {
  if (profile === undefined) return undefined;
  const hasField: Input<boolean> = HelmChart.find(scope) === undefined ? true : capabilities.atLeast(FIELD_SINCE);
  return when(profile, assert(hasField, TOO_OLD, profile));
}

/** The labels that select the pods. */
const SELECTOR = { [Label.app]: CNI_NAME };

/** Adds the node's name, which Prometheus does not know; includes the API server's defaults. */
const NODE_LABEL = { action: "replace", sourceLabels: ["__meta_kubernetes_pod_node_name"], targetLabel: "node" };

/** Any part of the stanza, and additional keys. */
type Extra = Readonly<Record<string, unknown>>;

/**
 * The values of the chart and its namespace. A value that is not given has its default, or in a Helm chart its value.
 */
export interface LinkerdCniProps extends PropsOf<Values>, InstallationProps {}

/** The Linkerd CNI plugin on every node: its installer, configuration and permissions. */
export class LinkerdCni extends Installation<Values> {
  /** The service account of the installer's pods. */
  readonly serviceAccount: ApiObject;
  /** Permissions of the installer and the repair controller in the cluster. */
  readonly clusterRole: ApiObject;
  /** Gives them to the service account. */
  readonly clusterRoleBinding: ApiObject;
  /** The plugin's configuration, and the directories of the nodes. */
  readonly configMap: ApiObject;
  /** The installer on every node. */
  readonly daemonSet: ApiObject;
  /** With `networkPolicy.enabled`: only probes and metrics reach the pods. */
  readonly networkPolicy: ApiObject | undefined;
  /** With `resourceQuota.create`: pods of the priority class may be created outside kube-system. */
  readonly resourceQuota: ApiObject | undefined;
  /** The installer's permission to create tokens of its own account. */
  readonly role: ApiObject;
  /** Gives `role` to the installer. */
  readonly roleBinding: ApiObject;
  /** With `nri.enabled`: the NRI plugin on every node. */
  readonly nri: LinkerdNri;
  /** With `nodeTaint.enabled`: the startup taint and its policies. */
  readonly nodeTaint: NodeTaint;
  /** Objects for Prometheus and Grafana, each with its own `enabled`. */
  readonly monitoring: Monitoring;
  private readonly extras: Extra[] = [];
  private readonly additions = new Additions();
  private readonly nriAdditions = new Additions();
  private readonly addedRules: Templated<k8s.PolicyRule>[] = [];

  constructor(scope: Construct, id: string, props: LinkerdCniProps = {}) {
    const labels = { [Label.cniResource]: "true" };
    super(scope, id, props, { name: CNI_NAME, labels, schema: values, ignored: Object.keys(FORMER_VALUES) });
    this.serviceAccount = this.createServiceAccount();
    this.createSecurityContextConstraint();
    this.createProxyUidPolicy();
    this.resourceQuota = this.createResourceQuota();
    this.networkPolicy = this.createNetworkPolicy();
    this.nodeTaint = this.createNodeTaint();
    this.monitoring = this.createMonitoring();
    this.clusterRole = this.createClusterRole();
    this.clusterRoleBinding = this.createClusterRoleBinding();
    const [role, roleBinding] = this.createTokenRole();
    this.role = role;
    this.roleBinding = roleBinding;
    this.nri = new LinkerdNri(this, "nri", {
      values: this.values,
      metadata: (own, annotations) => ({ ...this.metadata(own, annotations), name: NRI_NAME }),
      clusterMetadata: this.clusterMetadata(),
      annotations: this.createdBy(),
      additions: this.nriAdditions,
      daemonSetSpec: this.lazily(() => this.nriDaemonSetSpec()),
    });
    this.configMap = this.createConfigMap();
    this.daemonSet = this.createDaemonSet();
    this.createExtraObjects();
  }

  private createNodeTaint(): NodeTaint {
    const { values, namespace } = this;
    const clusterMetadata = this.clusterMetadata();
    return new NodeTaint(this, "node-taint", { ...values.nodeTaint, namespace, clusterMetadata });
  }

  /** Adds keys to the plugin's configuration, for instance for your own plugin. */
  addStanza(extra: Extra): void {
    this.extras.push(extra);
  }

  /** Adds a container to the installer's pods. */
  addContainer(container: Templated<k8s.Container>): void {
    this.additions.containers.push(container);
  }

  /** Adds an init container to the installer's pods, which ends before the installer starts. */
  addInitContainer(container: Templated<k8s.Container>): void {
    this.additions.initContainers.push(container);
  }

  /** Adds a volume to the installer's pods, which containers mount by name. */
  addVolume(volume: Templated<k8s.Volume>): void {
    this.additions.volumes.push(volume);
  }

  /** Adds an environment variable to the installer and the repair controller. */
  addEnv(variable: Templated<k8s.EnvVar>): void {
    this.additions.env.push(variable);
  }

  /** Adds a permission to the installer's role. */
  addRule(rule: Templated<k8s.PolicyRule>): void {
    this.addedRules.push(rule);
  }

  /**
   * Adds the pod of `helm test`, for Helm charts: it fails if the plugin does not redirect it. There is no such pod with
   * `helmTest.enabled` false, nor with `chained` false, because the plugin is not called for pods in this namespace.
   */
  addHelmTest(): ApiObject {
    const name = `${CNI_NAME}-test`;
    return this.add<k8s.KubePodProps>("helm-test", k8s.KubePod.GVK, {
      when: and(this.values.chained, this.values.helmTest.enabled),
      metadata: {
        ...this.metadata({ [Label.app]: name }, { ...this.createdBy(), ...MESHED, ...TEST_HOOK }),
        name,
      },
      spec: this.lazily(() => testPodSpec(this.values, this.podSecurity())),
    });
  }

  /** The plugin's configuration, before the installer adds it to the node's chain. Called at synthesis. */
  protected stanza(): StanzaTemplate {
    return stanzaOf(this.values, this.namespace);
  }

  /** The data of the ConfigMap. Called at synthesis. */
  protected configuration(): Labels {
    const stanza = this.extras.reduce<Extra>(overlaid, this.stanza());
    return {
      [ConfigMapKey.netDir]: this.directories().netDir,
      [ConfigMapKey.binDir]: this.directories().binDir,
      [ConfigMapKey.stanza]: toPrettyJson(define(this, `${CNI_NAME}.stanza`, stanza)),
    };
  }

  /** The CNI directories of the nodes: given ones, else the platform's. */
  private directories(): Directories {
    const { destCNIBinDir, destCNINetDir, platform } = this.values;
    const preset = (field: "destCNIBinDir" | "destCNINetDir") => {
      const usual = DEFAULT_DIRECTORIES[field];
      const others = PLATFORM_NAMES.filter((name) => PLATFORMS[name][field] !== usual);
      const presets = Object.fromEntries(others.map((name) => [name, PLATFORMS[name][field]]));
      return orElse(entryOf(presets, platform), usual);
    };
    const known = define(this, `${CNI_NAME}.directories`, {
      binDir: orElse(destCNIBinDir, preset("destCNIBinDir")),
      netDir: orElse(destCNINetDir, preset("destCNINetDir")),
    });
    return { binDir: entryOf(known, "binDir"), netDir: entryOf(known, "netDir") };
  }

  private createdBy(): Labels {
    return { [Annotation.createdBy]: `linkerd-cni-cdk8s ${version}` };
  }

  /** The token is mounted by default: linkerd's pods, restored by `kubectl rollout undo`, do not request one. */
  protected createServiceAccount(): ApiObject {
    return this.add<k8s.KubeServiceAccountProps>("service-account", k8s.KubeServiceAccount.GVK, {
      metadata: this.metadata(),
      imagePullSecrets: present(this.values.imagePullSecrets),
    });
  }

  /** The installer's permission to create a token of its own account that is not bound to its pod. */
  protected createTokenRole(): readonly [role: ApiObject, roleBinding: ApiObject] {
    const rule = {
      apiGroups: [""],
      resources: ["serviceaccounts/token"],
      resourceNames: [CNI_NAME],
      verbs: ["create"],
    };
    const role = this.add<k8s.KubeRoleProps>("role", k8s.KubeRole.GVK, { metadata: this.metadata(), rules: [rule] });
    const roleBinding = this.add<k8s.KubeRoleBindingProps>("role-binding", k8s.KubeRoleBinding.GVK, {
      metadata: this.metadata(),
      ...binding("Role", CNI_NAME, this.namespace),
    });
    return [role, roleBinding];
  }

  /** With platform `openshift`: the permission to use the security context constraint that the installer needs. */
  protected createSecurityContextConstraint(): void {
    for (const name of PLATFORM_NAMES) {
      const { securityContextConstraint: role } = PLATFORMS[name];
      if (role === undefined) continue;
      const { subjects, roleRef } = binding("ClusterRole", role, this.namespace, CNI_NAME);
      this.add<k8s.KubeRoleBindingProps>(`scc-${name}`, k8s.KubeRoleBinding.GVK, {
        when: eq<string>(this.values.platform, name),
        metadata: { ...this.metadata(), name: `${CNI_NAME}-scc` },
        subjects,
        roleRef,
      });
    }
  }

  /** With `resourceQuota.create`: pods of the priority class may be created outside kube-system. */
  protected createResourceQuota(): ApiObject | undefined {
    const { priorityClassName, resourceQuota } = this.values;
    const isElsewhere = not(eq<string>(this.namespace, "kube-system"));
    const auto = and(eq<string>(resourceQuota.create, "auto"), matches(priorityClassName, "^system-"), isElsewhere);
    const always = and(eq<string>(resourceQuota.create, "always"), not(eq<string>(priorityClassName, "")));
    return this.add<{ spec: object }>("resource-quota", k8s.KubeResourceQuota.GVK, {
      when: or(auto, always),
      metadata: this.metadata(),
      spec: {
        hard: { pods: text(resourceQuota.pods) },
        scopeSelector: {
          matchExpressions: [{ scopeName: "PriorityClass", operator: "In", values: [priorityClassName] }],
        },
      },
    });
  }

  /** The connections that the NetworkPolicy allows. */
  protected networkPolicySpec(): Part<k8s.NetworkPolicySpec> {
    return networkPolicySpec(this.values, SELECTOR);
  }

  /** With `namespaceUIDRange.admissionPolicy`: gives proxies a user id that their namespace allows. */
  protected createProxyUidPolicy(): void {
    mutatingPolicy(this, "proxy-uid", this.values.namespaceUIDRange.admissionPolicy, {
      metadata: { ...this.clusterMetadata(), name: `${CNI_NAME}-proxy-uid` },
      spec: proxyUidPolicy,
    });
  }

  /** The objects for Prometheus. */
  protected createMonitoring(): Monitoring {
    const metadata = this.selectable.bind(this);
    const { namespace, values } = this;
    const { grafanaDashboard, healthPort, nri, podMonitor, prometheusRule, repairController } = values;
    const features = {
      linkerd_cni_repair_controller_: repairController.enabled,
      linkerd_cni_nri_: nri.enabled,
    };
    const endpoint = (port: string) => ({
      port,
      path: AdminPath.metrics,
      ...scraping(podMonitor),
      relabelings: [NODE_LABEL],
    });
    const monitoring = new Monitoring(this, "monitoring", {
      name: CNI_NAME,
      namespace,
      selector: SELECTOR,
      metadata,
      podMonitor: {
        enabled: and(podMonitor.enabled, or(isServed(healthPort), repairController.enabled)),
        labels: podMonitor.labels,
        endpoints: [
          when(isServed(healthPort), endpoint("health")),
          when(repairController.enabled, endpoint("repair-admin")),
        ],
      },
      prometheusRule: { ...prometheusRule, groups: (job) => alertGroups(values, job) },
      dashboard: { ...grafanaDashboard, json: dashboardFor(features) },
    });
    new PodMonitor(this, "nri-pod-monitor", {
      name: NRI_NAME,
      selector: NRI_SELECTOR,
      metadata,
      podMonitor: {
        enabled: and(podMonitor.enabled, values.nri.enabled),
        labels: podMonitor.labels,
        endpoints: [endpoint(NRI_PORT_NAME)],
      },
    });
    return monitoring;
  }

  /** Permissions of the plugin, the installer and the repair controller in the cluster. */
  protected clusterRoleRules(): Parts<k8s.PolicyRule> {
    return [...roleRules(this.values, this.nodeTaint), ...this.addedRules];
  }

  /** The plugin's configuration: the data of `configuration()`. */
  protected createConfigMap(): ApiObject {
    return this.add<k8s.KubeConfigMapProps>("config-map", k8s.KubeConfigMap.GVK, {
      metadata: { ...this.metadata(), name: CONFIG_MAP },
      data: this.lazily(() => this.configuration()),
    });
  }

  /** The installer on every node: the spec of `daemonSetSpec()`. */
  protected createDaemonSet(): ApiObject {
    return this.add<k8s.KubeDaemonSetProps>("daemon-set", k8s.KubeDaemonSet.GVK, {
      metadata: this.metadata(SELECTOR, this.createdBy()),
      spec: this.lazily(() => this.daemonSetSpec()),
    });
  }

  /** The pods on every node. */
  protected podSpec(): PodParts {
    const values = this.additions.valuesOf(this.values);
    return this.additions.podOf(podSpec(values, this.directories(), this.podSecurity(), this.nodeTaint));
  }

  private podSecurity(): Templated<k8s.PodSecurityContext> {
    // The generated types do not have the field.
    const appArmor = { appArmorProfile: appArmorOf(this, this.values) };
    return { seccompProfile: { type: "RuntimeDefault" }, ...appArmor } as Templated<k8s.PodSecurityContext>;
  }

  /** The spec of the DaemonSet: its pods and update strategy. */
  protected daemonSetSpec(): Part<k8s.DaemonSetSpec> {
    return {
      selector: { matchLabels: SELECTOR },
      revisionHistoryLimit: this.values.revisionHistoryLimit,
      updateStrategy: updateStrategy(this.values),
      template: { metadata: this.nodePodMetadata(SELECTOR), spec: this.podSpec() },
    };
  }

  /** The pods of the NRI plugin on every node. */
  protected nriPodSpec(): PodParts {
    const values = this.nriAdditions.valuesOf(this.values);
    return this.nriAdditions.podOf(nriPodSpec(values, this.podSecurity(), this.nodeTaint));
  }

  /** The spec of the NRI plugin's DaemonSet: its pods and update strategy. */
  protected nriDaemonSetSpec(): Part<k8s.DaemonSetSpec> {
    return {
      selector: { matchLabels: NRI_SELECTOR },
      revisionHistoryLimit: this.values.revisionHistoryLimit,
      updateStrategy: nriUpdateStrategy,
      template: { metadata: this.nodePodMetadata(NRI_SELECTOR), spec: this.nriPodSpec() },
    };
  }

  private nodePodMetadata(selector: Labels) {
    // Containers read the configuration when they start, so a change must replace the pods.
    const checksum = { "checksum/config": sha256(toJson(this.configuration())) };
    return this.podMetadata(selector, { ...this.createdBy(), ...checksum });
  }
}
