import type { ApiObject, GroupVersionKind } from "cdk8s";
import { k8s } from "cdk8s-plus-27";
import type { Construct } from "constructs";
import { MULTUS_NAME, OperatorPath, WEBHOOK_SECRET, WEBHOOK_SERVICE } from "../../cni/contract";
import {
  and,
  concat,
  type HelmManifest,
  type Input,
  int,
  matches,
  not,
  type Part,
  type Parts,
  type PropsOf,
  present,
  type Templated,
  when,
} from "../../helm/index";
import { Installation, type InstallationProps, type Labels } from "../installation";
import { Monitoring, scraping } from "../monitoring/monitoring";
import { ingressOnly, tcp } from "../network-policy";
import { binding } from "../rbac";
import { multusAlerts } from "./alerts";
import { isIssued, operatorPod, SELECTOR } from "./pod";
import { CONFIGURATION_RULES, clusterRules, ownRules } from "./rbac";
import { type MultusValues, multusValues } from "./values";
import { AUTHORITY, AUTHORITY_SPEC, CERTIFICATE, certificateSpec, ISSUER, podWebhooks, ROOT } from "./webhook";

/**
 * The values of the chart and its namespace. A value that is not given has its default, or in a Helm chart its value.
 */
export interface LinkerdMultusProps extends PropsOf<MultusValues>, InstallationProps {}

/** The operator that makes Multus attach pods to the Linkerd CNI plugin: its pods, webhook and permissions. */
export class LinkerdMultus extends Installation<MultusValues> {
  /** The service account of the operator's pods. */
  readonly serviceAccount: ApiObject;
  /** What the operator may do in the whole cluster. */
  readonly clusterRole: ApiObject;
  /** Gives it these permissions. */
  readonly clusterRoleBinding: ApiObject;
  /** With `networkPolicy.enabled`: allows only connections to the webhook, probes and metrics. */
  readonly networkPolicy: ApiObject | undefined;
  /** With `podDisruptionBudget.enabled`. */
  readonly podDisruptionBudget: ApiObject | undefined;
  /** Objects for Prometheus, each with its own `enabled`. */
  readonly monitoring: Monitoring;
  /** The operator's pods. */
  readonly deployment: ApiObject;
  /** The Service of the webhook. */
  readonly service: ApiObject;
  /** Registers the webhook for pods with the API server. */
  readonly webhookConfiguration: ApiObject;

  constructor(scope: Construct, id: string, props: LinkerdMultusProps = {}) {
    super(scope, id, props, { name: MULTUS_NAME, labels: SELECTOR, schema: multusValues });
    this.serviceAccount = this.createServiceAccount();
    this.clusterRole = this.createClusterRole();
    this.clusterRoleBinding = this.createClusterRoleBinding();
    this.createRoles();
    this.networkPolicy = this.createNetworkPolicy();
    this.podDisruptionBudget = this.createPodDisruptionBudget();
    this.monitoring = this.createMonitoring();
    this.createCertificate();
    this.createSecret();
    this.service = this.createService();
    this.deployment = this.createDeployment();
    this.webhookConfiguration = this.createWebhookConfiguration();
    this.createExtraObjects();
  }

  /** The service account of the operator's pods. */
  protected createServiceAccount(): ApiObject {
    return this.add<k8s.KubeServiceAccountProps>("service-account", k8s.KubeServiceAccount.GVK, {
      metadata: this.metadata(),
      // Only the pods of this chart need the token, and they request it.
      automountServiceAccountToken: false,
      imagePullSecrets: present(this.values.imagePullSecrets),
    });
  }

  /** What the operator may do in the whole cluster. */
  protected clusterRoleRules(): Parts<k8s.PolicyRule> {
    return clusterRules(this.values);
  }

  /** Permissions in the operator's namespace and in that of the plugin's configuration, which may be the same. */
  protected createRoles(): void {
    const { cniNamespace } = this.values.controller;
    const places = [
      { id: "role", metadata: this.metadata(), rules: ownRules(this.values) },
      {
        id: "config-role",
        metadata: { ...this.metadata(), name: `${MULTUS_NAME}-config`, namespace: cniNamespace },
        rules: CONFIGURATION_RULES,
      },
    ];
    for (const { id, metadata, rules } of places) {
      this.add<k8s.KubeRoleProps>(id, k8s.KubeRole.GVK, { metadata, rules });
      this.add<k8s.KubeRoleBindingProps>(`${id}-binding`, k8s.KubeRoleBinding.GVK, {
        metadata,
        ...binding("Role", metadata.name, this.namespace, MULTUS_NAME),
      });
    }
  }

  /** The connections that the NetworkPolicy allows. The API server may call the webhook from anywhere. */
  protected networkPolicySpec(): Part<k8s.NetworkPolicySpec> {
    const { networkPolicy, service } = this.values;
    return ingressOnly(SELECTOR, [
      { ports: [tcp(service.webhookPort)] },
      { from: present(networkPolicy.from), ports: [tcp(service.metricsPort), tcp(service.healthPort)] },
    ]);
  }

  /** With `podDisruptionBudget.enabled`. */
  protected createPodDisruptionBudget(): ApiObject | undefined {
    const { enabled, maxUnavailable } = this.values.podDisruptionBudget;
    const share = when(matches(maxUnavailable, "%"), maxUnavailable, int(maxUnavailable));
    return this.add<k8s.KubePodDisruptionBudgetProps>("disruption-budget", k8s.KubePodDisruptionBudget.GVK, {
      when: enabled,
      metadata: this.metadata(),
      spec: { selector: { matchLabels: SELECTOR }, maxUnavailable: share },
    });
  }

  /** The objects for Prometheus. */
  protected createMonitoring(): Monitoring {
    const { podMonitor, prometheusRule } = this.values;
    return new Monitoring(this, "monitoring", {
      name: MULTUS_NAME,
      namespace: this.namespace,
      selector: SELECTOR,
      metadata: this.selectable.bind(this),
      podMonitor: {
        ...podMonitor,
        endpoints: [{ port: "metrics", path: OperatorPath.metrics, ...scraping(podMonitor) }],
      },
      prometheusRule: { ...prometheusRule, groups: (job) => multusAlerts(this.values, job) },
    });
  }

  /** With `webhook.certificates: cert-manager`. */
  protected createCertificate(): void {
    const issued = isIssued(this.values);
    const { issuerRef } = this.values.webhook;
    const ownIssuer = issuerRef === undefined ? issued : and(issued, not(issuerRef));
    const add = (id: string, type: GroupVersionKind, manifest: HelmManifest<{ spec: object }>) =>
      this.add<{ spec: object }>(id, type, manifest);
    const named = (name: string, condition: Input<boolean>) => ({
      when: condition,
      metadata: { ...this.metadata(), name },
    });
    add("root-issuer", ISSUER, { ...named(ROOT, ownIssuer), spec: { selfSigned: {} } });
    add("authority", CERTIFICATE, { ...named(AUTHORITY, ownIssuer), spec: AUTHORITY_SPEC });
    add("issuer", ISSUER, { ...named(WEBHOOK_SERVICE, ownIssuer), spec: { ca: { secretName: AUTHORITY } } });
    const spec = certificateSpec(this.values, this.namespace);
    add("certificate", CERTIFICATE, { ...named(WEBHOOK_SERVICE, issued), spec });
  }

  /**
   * With `webhook.certificates: self`. Empty: the operator fills it, and so does not need the permission to create
   * Secrets. Since the manifest has no data, Helm, kubectl and GitOps tools see no difference.
   */
  protected createSecret(): void {
    this.add<k8s.KubeSecretProps>("secret", k8s.KubeSecret.GVK, {
      when: not(isIssued(this.values)),
      metadata: { ...this.metadata(), name: WEBHOOK_SECRET },
      type: "Opaque",
    });
  }

  /** The Service of the webhook. */
  protected createService(): ApiObject {
    return this.add<k8s.KubeServiceProps>("service", k8s.KubeService.GVK, {
      metadata: { ...this.metadata(), name: WEBHOOK_SERVICE },
      spec: {
        selector: SELECTOR,
        ports: [{ name: "webhook", port: 443, targetPort: "webhook", protocol: "TCP" }],
      },
    });
  }

  /** The operator: the spec of `deploymentSpec()`. */
  protected createDeployment(): ApiObject {
    return this.add<k8s.KubeDeploymentProps>("deployment", k8s.KubeDeployment.GVK, {
      metadata: this.metadata(),
      spec: this.lazily(() => this.deploymentSpec()),
    });
  }

  /** The operator's pods. */
  protected podSpec(): Templated<k8s.PodSpec> {
    return operatorPod(this.values);
  }

  /** The spec of the Deployment: its pods and update strategy. */
  protected deploymentSpec(): Part<k8s.DeploymentSpec> {
    return {
      replicas: this.values.replicaCount,
      // On the host network, a new pod can start only after an old one has freed its ports.
      strategy: when(this.values.hostNetwork, {
        type: "RollingUpdate",
        rollingUpdate: { maxSurge: 0, maxUnavailable: 1 },
      }),
      selector: { matchLabels: SELECTOR },
      template: {
        metadata: this.podMetadata({}),
        spec: this.podSpec(),
      },
    };
  }

  /** Registers the webhooks of `webhooks()` with the API server. */
  protected createWebhookConfiguration(): ApiObject {
    const issued = { "cert-manager.io/inject-ca-from": concat(this.namespace, `/${WEBHOOK_SERVICE}`) };
    const annotations = when(isIssued(this.values), this.annotations(issued), this.annotations()) as Labels;
    return this.add<k8s.KubeMutatingWebhookConfigurationProps>(
      "webhook-configuration",
      k8s.KubeMutatingWebhookConfiguration.GVK,
      {
        metadata: { ...this.clusterMetadata(), annotations },
        webhooks: this.lazily(() => this.webhooks()),
      },
    );
  }

  /** The webhooks that the API server calls about pods. */
  protected webhooks(): Templated<k8s.MutatingWebhook[]> {
    return podWebhooks(this.values, this.namespace);
  }
}
