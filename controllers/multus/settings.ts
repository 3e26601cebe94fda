import { LOG_LEVELS, type LogLevel } from "../../cni/stanza";
import { type InCluster, readInCluster } from "../../kubernetes/in-cluster";
import type { Rate } from "../../kubernetes/rate-limiter";
import type { ListenAddress } from "../../process/http-server";
import { LOG_FORMATS, type LogFormat } from "../../process/log";
import { type Environment, SettingsReader } from "../../process/settings";

const CERTIFICATE_SOURCES = ["self", "mounted"] as const;
const HOUR_MS = 3_600_000;

/** The webhook's names and certificates. */
export interface WebhookSettings {
  readonly port: number;
  /** Name of its Service, in the operator's namespace. */
  readonly service: string;
  /** Name of the MutatingWebhookConfiguration whose caBundle is kept. */
  readonly configuration: string;
  /** `self`: made and rotated here; `mounted`: read from {@link certificateDir}. */
  readonly certificates: (typeof CERTIFICATE_SOURCES)[number];
  /** Name of the Secret with the certificate that is made here. */
  readonly certificateSecret: string;
  /** Directory with `tls.crt` and `tls.key`. */
  readonly certificateDir: string;
  /** How long a certificate that is made here is valid. */
  readonly certificateValidityMs: number;
}

/** Settings of the Multus operator. */
export interface Settings {
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
  /** Where ConfigMap linkerd-cni-config is. */
  readonly cniNamespace: string;
  /** Linkerd's control plane. */
  readonly linkerdNamespace: string;
  /** Path of the plugin's kubeconfig on the nodes. */
  readonly cniKubeconfig: string;
  /** Name of the namespaces' annotation with the range of user ids, `FIRST/SIZE`. */
  readonly uidRangeAnnotation: string;
  /** Added to the first user id of the range. */
  readonly proxyUidOffset: number;
  readonly webhook: WebhookSettings;
  /** Undefined: no metrics are served. */
  readonly metrics: ListenAddress | undefined;
  readonly health: ListenAddress;
  /** Only the holder of the Lease writes definitions. */
  readonly leaderElect: boolean;
  /** How often definitions are written. */
  readonly rate: Rate;
  /** Where this pod runs: the place of Lease and Secret. */
  readonly podNamespace: string;
  readonly podName: string;
  readonly cluster: InCluster;
}

/** Names and defaults; the first nine are those of the known operator. */
const FLAGS = {
  "cni-namespace": "linkerd-cni",
  "linkerd-namespace": "linkerd",
  "cni-kubeconfig": "/etc/cni/net.d/ZZZ-linkerd-cni-kubeconfig",
  "namespace-uid-range-annotation": "openshift.io/sa.scc.uid-range",
  "linkerd-proxy-uid-offset": "2102",
  "webhook-port": "9443",
  "metrics-bind-address": ":8080",
  "health-probe-bind-address": ":8081",
  "leader-elect": true,
  "log-level": "info",
  "log-format": "plain",
  "webhook-service": "linkerd-multus-webhook",
  "webhook-configuration": "linkerd-multus",
  "webhook-certificates": "self",
  "webhook-certificate-secret": "linkerd-multus-webhook-tls",
  "webhook-certificate-dir": "/tls",
  "webhook-certificate-validity-hours": "2160",
  "requests-per-second": "20",
  "request-burst": "40",
};

/** With it in place of an address the known operator serves no metrics. */
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
    port: read.flag("webhook-port").port(),
    service: read.flag("webhook-service").matching(LABEL),
    configuration: read.flag("webhook-configuration").matching(NAME),
    certificates: read.flag("webhook-certificates").oneOf(CERTIFICATE_SOURCES),
    certificateSecret: read.flag("webhook-certificate-secret").matching(NAME),
    certificateDir: read.flag("webhook-certificate-dir").absolutePath(),
    certificateValidityMs: read.flag("webhook-certificate-validity-hours").positive() * HOUR_MS,
  };
}

/** Reads the command line and the environment. @throws an Error that lists everything that is wrong */
export function readSettings(args: readonly string[], environment: Environment): Settings {
  const read = new SettingsReader({ environment, args, flags: FLAGS });
  const metrics = read.flag("metrics-bind-address");
  const settings: Settings = {
    logLevel: read.flag("log-level").oneOf(LOG_LEVELS),
    logFormat: read.flag("log-format").oneOf(LOG_FORMATS),
    cniNamespace: read.flag("cni-namespace").matching(LABEL),
    linkerdNamespace: read.flag("linkerd-namespace").matching(LABEL),
    cniKubeconfig: read.flag("cni-kubeconfig").absolutePath(),
    uidRangeAnnotation: read.flag("namespace-uid-range-annotation").matching(ANNOTATION),
    proxyUidOffset: read.flag("linkerd-proxy-uid-offset").integer(),
    webhook: readWebhook(read),
    metrics: metrics.value === NO_ADDRESS ? undefined : metrics.address(),
    health: read.flag("health-probe-bind-address").address(),
    leaderElect: read.flag("leader-elect").boolean(),
    rate: {
      perSecond: read.flag("requests-per-second").positive(),
      burst: Math.max(1, read.flag("request-burst").positive()),
    },
    podNamespace: read.required("POD_NAMESPACE", "set it from metadata.namespace"),
    podName: read.required("POD_NAME", "set it from metadata.name"),
    cluster: readInCluster(read),
  };
  read.finish();
  return settings;
}
