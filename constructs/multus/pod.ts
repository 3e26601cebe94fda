import type { k8s } from "cdk8s-plus-27";
import {
  CERTIFICATE_DIR,
  CERTIFICATE_SOURCES,
  Container as ContainerName,
  Label,
  MULTUS_NAME,
  OperatorFlag,
  OperatorPath,
  PodVariable,
  WEBHOOK_SECRET,
  WEBHOOK_SERVICE,
} from "../../cni/contract";
import {
  assert,
  concat,
  eq,
  ge,
  type Input,
  not,
  or,
  present,
  type Refs,
  spread,
  type Templated,
  text,
  when,
} from "../../helm/index";
import { extraEnvOf, fromField, imageOf, probesOf, programCommand, RESTRICTED, resourcesOf } from "../container";
import type { MultusValues } from "./values";
import { ISSUED_SECRET } from "./webhook";

/** The labels that select the operator's pods. */
export const SELECTOR = { [Label.name]: MULTUS_NAME } as const;

/** Whether cert-manager makes the webhook's certificate. */
export const isIssued = ({ webhook }: Refs<MultusValues>): Input<boolean> =>
  eq<string>(webhook.certificates, "cert-manager");

const [SELF, MOUNTED] = CERTIFICATE_SOURCES;

const flag = (name: (typeof OperatorFlag)[keyof typeof OperatorFlag], value: Input<string>): Input<string> =>
  concat(`--${name}=`, value);

function args(values: Refs<MultusValues>): Templated<k8s.Container["args"]> {
  const { controller, webhook, service } = values;
  const issued = isIssued(values);
  return [
    flag(OperatorFlag.cniNamespace, controller.cniNamespace),
    flag(OperatorFlag.linkerdNamespace, controller.linkerdControlPlaneNamespace),
    flag(OperatorFlag.cniKubeconfig, controller.cniKubeconfigNodePath),
    flag(OperatorFlag.uidRangeAnnotation, controller.namespaceUIDRangeAnnotation),
    flag(OperatorFlag.proxyUidOffset, text(controller.linkerdProxyUIDOffset)),
    flag(OperatorFlag.leaderElect, text(controller.leaderElection)),
    flag(OperatorFlag.requestsPerSecond, text(controller.requestsPerSecond)),
    flag(OperatorFlag.requestBurst, text(controller.requestBurst)),
    flag(OperatorFlag.webhookPort, text(service.webhookPort)),
    flag(OperatorFlag.metricsAddress, concat(":", text(service.metricsPort))),
    flag(OperatorFlag.healthAddress, concat(":", text(service.healthPort))),
    flag(OperatorFlag.webhookService, WEBHOOK_SERVICE),
    flag(OperatorFlag.webhookConfiguration, MULTUS_NAME),
    flag(OperatorFlag.certificates, when(issued, MOUNTED, SELF) as Input<string>),
    when(
      issued,
      `--${OperatorFlag.certificateDir}=${CERTIFICATE_DIR}`,
      `--${OperatorFlag.certificateSecret}=${WEBHOOK_SECRET}`,
    ),
    when(not(issued), flag(OperatorFlag.certificateValidity, text(webhook.certificateValidityHours))),
    flag(OperatorFlag.logLevel, values.logLevel),
    flag(OperatorFlag.logFormat, values.logFormat),
  ];
}

/** The webhook's port; checks that the pod's three ports differ. */
function distinct({ webhookPort, metricsPort, healthPort }: Refs<MultusValues>["service"]): Input<number> {
  const [webhook, metrics, health] = [text(webhookPort), text(metricsPort), text(healthPort)];
  const same = or(eq(webhook, metrics), eq(webhook, health), eq(metrics, health));
  return assert(not(same), "service: webhookPort, metricsPort and healthPort must differ", webhookPort);
}

function container(values: Refs<MultusValues>): Templated<k8s.Container> {
  const { service } = values;
  return {
    name: ContainerName.operator,
    ...imageOf(values),
    command: programCommand("multus"),
    args: args(values),
    env: [
      fromField(PodVariable.podNamespace, "metadata.namespace"),
      fromField(PodVariable.podName, "metadata.name"),
      ...extraEnvOf(values),
    ],
    ports: [
      { name: "webhook", containerPort: distinct(service), protocol: "TCP" },
      { name: "metrics", containerPort: service.metricsPort, protocol: "TCP" },
      { name: "health", containerPort: service.healthPort, protocol: "TCP" },
    ],
    ...probesOf("health", OperatorPath),
    resources: resourcesOf(values.resources),
    securityContext: {
      ...RESTRICTED,
      runAsNonRoot: true,
      runAsUser: when(ge(values.runAsUser, 0), values.runAsUser),
    },
    volumeMounts: when(isIssued(values), [{ name: "certificate", mountPath: CERTIFICATE_DIR, readOnly: true }]),
  };
}

/** The loss of one node must not stop two replicas. */
const APART = {
  podAntiAffinity: {
    preferredDuringSchedulingIgnoredDuringExecution: [
      {
        weight: 100,
        podAffinityTerm: { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: SELECTOR } },
      },
    ],
  },
};

const OVER_ZONES = [
  {
    maxSkew: 1,
    topologyKey: "topology.kubernetes.io/zone",
    whenUnsatisfiable: "ScheduleAnyway",
    labelSelector: { matchLabels: SELECTOR },
  },
];

/** The operator's pods. */
export function operatorPod(values: Refs<MultusValues>): Templated<k8s.PodSpec> {
  const { affinity, topologySpreadConstraints } = values;
  return {
    serviceAccountName: MULTUS_NAME,
    automountServiceAccountToken: true,
    // The API server drops a false value: if it were set, every apply would see a difference.
    hostNetwork: when(values.hostNetwork, true),
    terminationGracePeriodSeconds: values.terminationGracePeriodSeconds,
    nodeSelector: { ...spread(values.nodeSelector), [Label.os]: "linux" },
    affinity: (affinity === undefined ? APART : when(affinity, affinity, APART)) as Templated<k8s.Affinity>,
    topologySpreadConstraints: when(topologySpreadConstraints, topologySpreadConstraints, OVER_ZONES) as Templated<
      k8s.TopologySpreadConstraint[]
    >,
    tolerations: present(values.tolerations),
    priorityClassName: present(values.priorityClassName),
    securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
    containers: [container(values)],
    volumes: when(isIssued(values), [{ name: "certificate", secret: { secretName: ISSUED_SECRET } }]),
  };
}
