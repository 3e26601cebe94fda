import {
  Annotation,
  CERTIFICATE_DIR,
  CERTIFICATE_SOURCES,
  CNI_NAME,
  KUBECONFIG_FILE,
  MULTUS_NAME,
  NodePath,
  OperatorFlag,
  PodVariable,
  WEBHOOK_SECRET,
  WEBHOOK_SERVICE,
} from "../../cni/contract";
import { LOG_LEVELS, ProxyDefault } from "../../cni/stanza";
import { readInCluster } from "../../kubernetes/in-cluster";
import { LOG_FORMATS } from "../../process/log";
import { type Environment, SettingsReader } from "../../process/settings";

const HOUR_MS = 3_600_000;

/** Names and defaults; the first nine equal those of linkerd's operator. */
const FLAGS = {
  [OperatorFlag.cniNamespace]: CNI_NAME,
  [OperatorFlag.linkerdNamespace]: "linkerd",
  [OperatorFlag.cniKubeconfig]: `${NodePath.netDir}/${KUBECONFIG_FILE}`,
  [OperatorFlag.uidRangeAnnotation]: Annotation.uidRange,
  [OperatorFlag.proxyUidOffset]: String(ProxyDefault.uid),
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

/** Reads the command line and the environment. @throws an Error that lists all problems */
export function readSettings(args: readonly string[], environment: Environment) {
  const read = new SettingsReader({ environment, args, flags: FLAGS });
  const metrics = read.flag(OperatorFlag.metricsAddress);
  const settings = {
    logLevel: read.flag(OperatorFlag.logLevel).oneOf(LOG_LEVELS),
    logFormat: read.flag(OperatorFlag.logFormat).oneOf(LOG_FORMATS),
    /** Namespace of ConfigMap linkerd-cni-config. */
    cniNamespace: read.flag(OperatorFlag.cniNamespace).value,
    /** Namespace of Linkerd's control plane. */
    linkerdNamespace: read.flag(OperatorFlag.linkerdNamespace).value,
    /** Path of the plugin's kubeconfig on the nodes. */
    cniKubeconfig: read.flag(OperatorFlag.cniKubeconfig).absolutePath(),
    /** Name of the namespaces' annotation with the range of user ids, `FIRST/SIZE`. */
    uidRangeAnnotation: read.flag(OperatorFlag.uidRangeAnnotation).value,
    /** Added to the first user id of the range. */
    proxyUidOffset: read.flag(OperatorFlag.proxyUidOffset).integer(),
    webhook: {
      port: read.flag(OperatorFlag.webhookPort).port(),
      /** Name of its Service, in the operator's namespace. */
      service: read.flag(OperatorFlag.webhookService).value,
      /** Name of the MutatingWebhookConfiguration whose caBundle the operator maintains. */
      configuration: read.flag(OperatorFlag.webhookConfiguration).value,
      /** `self`: made and rotated here; `mounted`: read from `certificateDir`. */
      certificates: read.flag(OperatorFlag.certificates).oneOf(CERTIFICATE_SOURCES),
      /** Name of the Secret with the operator's certificate. */
      certificateSecret: read.flag(OperatorFlag.certificateSecret).value,
      /** Directory with `tls.crt` and `tls.key`. */
      certificateDir: read.flag(OperatorFlag.certificateDir).absolutePath(),
      /** Validity of the operator's certificate. */
      certificateValidityMs: read.flag(OperatorFlag.certificateValidity).positive() * HOUR_MS,
    },
    /** Undefined: metrics are disabled. */
    metrics: metrics.value === NO_ADDRESS ? undefined : metrics.address(),
    health: read.flag(OperatorFlag.healthAddress).address(),
    /** Only the holder of the Lease writes definitions. */
    leaderElect: read.flag(OperatorFlag.leaderElect).boolean(),
    /** Rate limit of writes of definitions. */
    rate: {
      perSecond: read.flag(OperatorFlag.requestsPerSecond).positive(),
      burst: Math.max(1, read.flag(OperatorFlag.requestBurst).positive()),
    },
    /** This pod's namespace, which contains the Lease and the Secret. */
    podNamespace: read.required(PodVariable.podNamespace, "set it from metadata.namespace"),
    podName: read.required(PodVariable.podName, "set it from metadata.name"),
    cluster: readInCluster(read),
  } as const;
  read.finish();
  return settings;
}

/** Settings of the Multus operator. */
export type Settings = ReturnType<typeof readSettings>;
