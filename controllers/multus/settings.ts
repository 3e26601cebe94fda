import {
  Annotation,
  CERTIFICATE_DIR,
  CERTIFICATE_SOURCES,
  type CertificateSource,
  CNI_NAME,
  KUBECONFIG_FILE,
  MULTUS_NAME,
  NodePath,
  OperatorFlag,
  PodVariable,
  WEBHOOK_SECRET,
  WEBHOOK_SERVICE,
} from "../../cni/contract";
import { LOG_LEVELS, type LogLevel } from "../../cni/stanza";
import { type InCluster, readInCluster } from "../../kubernetes/in-cluster";
import type { Rate } from "../../kubernetes/rate-limiter";
import type { ListenAddress } from "../../process/http-server";
import { LOG_FORMATS, type LogFormat } from "../../process/log";
import { type Environment, SettingsReader } from "../../process/settings";

const HOUR_MS = 3_600_000;

/** The webhook's names and certificates. */
export interface WebhookSettings {
  readonly port: number;
  /** Name of its Service, in the operator's namespace. */
  readonly service: string;
  /** Name of the MutatingWebhookConfiguration whose caBundle the operator maintains. */
  readonly configuration: string;
  /** `self`: made and rotated here; `mounted`: read from {@link certificateDir}. */
  readonly certificates: CertificateSource;
  /** Name of the Secret with the operator's certificate. */
  readonly certificateSecret: string;
  /** Directory with `tls.crt` and `tls.key`. */
  readonly certificateDir: string;
  /** Validity of the operator's certificate. */
  readonly certificateValidityMs: number;
}

/** Settings of the Multus operator. */
export interface Settings {
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
  /** Namespace of ConfigMap linkerd-cni-config. */
  readonly cniNamespace: string;
  /** Namespace of Linkerd's control plane. */
  readonly linkerdNamespace: string;
  /** Path of the plugin's kubeconfig on the nodes. */
  readonly cniKubeconfig: string;
  /** Name of the namespaces' annotation with the range of user ids, `FIRST/SIZE`. */
  readonly uidRangeAnnotation: string;
  /** Added to the first user id of the range. */
  readonly proxyUidOffset: number;
  readonly webhook: WebhookSettings;
  /** Undefined: metrics are disabled. */
  readonly metrics: ListenAddress | undefined;
  readonly health: ListenAddress;
  /** Only the holder of the Lease writes definitions. */
  readonly leaderElect: boolean;
  /** Rate limit of writes of definitions. */
  readonly rate: Rate;
  /** This pod's namespace, which contains the Lease and the Secret. */
  readonly podNamespace: string;
  readonly podName: string;
  readonly cluster: InCluster;
}

/** Names and defaults; the first nine equal those of linkerd's operator. */
const FLAGS = {
  [OperatorFlag.cniNamespace]: CNI_NAME,
  [OperatorFlag.linkerdNamespace]: "linkerd",
  [OperatorFlag.cniKubeconfig]: `${NodePath.netDir}/${KUBECONFIG_FILE}`,
  [OperatorFlag.uidRangeAnnotation]: Annotation.uidRange,
  [OperatorFlag.proxyUidOffset]: "2102",
  [OperatorFlag.webhookPort]: "9443",
  [OperatorFlag.metricsAddress]: ":8080",
  [OperatorFlag.healthAddress]: ":8081",
  [OperatorFlag.leaderElect]: true,
  [OperatorFlag.logLevel]: "info",
  [OperatorFlag.logFormat]: "plain",
  [OperatorFlag.webhookService]: WEBHOOK_SERVICE,
  [OperatorFlag.webhookConfiguration]: MULTUS_NAME,
  [OperatorFlag.certificates]: "self",
  [OperatorFlag.certificateSecret]: WEBHOOK_SECRET,
  [OperatorFlag.certificateDir]: CERTIFICATE_DIR,
  [OperatorFlag.certificateValidity]: "2160",
  [OperatorFlag.requestsPerSecond]: "20",
  [OperatorFlag.requestBurst]: "40",
};

/** With this value instead of an address, linkerd's operator does not serve metrics. */
const NO_ADDRESS = "0";

const LABEL = { pattern: /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, what: "a name such as linkerd-cni" };
const NAME = { pattern: /^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$/, what: "a name such as linkerd-multus" };
const ANNOTATION = {
  pattern: /^([a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?$/,
  what: "an annotation's name such as openshift.io/sa.scc.uid-range",
};

type Flags = SettingsReader<typeof FLAGS>;

function readWebhook(read: Flags): WebhookSettings {
  return {
    port: read.flag(OperatorFlag.webhookPort).port(),
    service: read.flag(OperatorFlag.webhookService).matching(LABEL),
    configuration: read.flag(OperatorFlag.webhookConfiguration).matching(NAME),
    certificates: read.flag(OperatorFlag.certificates).oneOf(CERTIFICATE_SOURCES),
    certificateSecret: read.flag(OperatorFlag.certificateSecret).matching(NAME),
    certificateDir: read.flag(OperatorFlag.certificateDir).absolutePath(),
    certificateValidityMs: read.flag(OperatorFlag.certificateValidity).positive() * HOUR_MS,
  };
}

/** Reads the command line and the environment. @throws an Error that lists all problems */
export function readSettings(args: readonly string[], environment: Environment): Settings {
  const read = new SettingsReader({ environment, args, flags: FLAGS });
  const metrics = read.flag(OperatorFlag.metricsAddress);
  const settings: Settings = {
    logLevel: read.flag(OperatorFlag.logLevel).oneOf(LOG_LEVELS),
    logFormat: read.flag(OperatorFlag.logFormat).oneOf(LOG_FORMATS),
    cniNamespace: read.flag(OperatorFlag.cniNamespace).matching(LABEL),
    linkerdNamespace: read.flag(OperatorFlag.linkerdNamespace).matching(LABEL),
    cniKubeconfig: read.flag(OperatorFlag.cniKubeconfig).absolutePath(),
    uidRangeAnnotation: read.flag(OperatorFlag.uidRangeAnnotation).matching(ANNOTATION),
    proxyUidOffset: read.flag(OperatorFlag.proxyUidOffset).integer(),
    webhook: readWebhook(read),
    metrics: metrics.value === NO_ADDRESS ? undefined : metrics.address(),
    health: read.flag(OperatorFlag.healthAddress).address(),
    leaderElect: read.flag(OperatorFlag.leaderElect).boolean(),
    rate: {
      perSecond: read.flag(OperatorFlag.requestsPerSecond).positive(),
      burst: Math.max(1, read.flag(OperatorFlag.requestBurst).positive()),
    },
    podNamespace: read.required(PodVariable.podNamespace, "set it from metadata.namespace"),
    podName: read.required(PodVariable.podName, "set it from metadata.name"),
    cluster: readInCluster(read),
  };
  read.finish();
  return settings;
}
