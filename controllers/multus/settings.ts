import { LOG_FORMATS, type LogFormat } from "../../cni/log";
import { LOG_LEVELS, type LogLevel } from "../../cni/stanza";
import type { InCluster } from "../../kubernetes/in-cluster";
import type { ListenAddress } from "../admin";
import type { Rate } from "../bucket";
import { type Environment, Reader } from "../reader";
import { type FlagValues, parseFlags } from "./flags";

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

/** What the Multus operator is told. */
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
  "leader-elect": true as boolean,
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
const PATH = { pattern: /^\/[^\0]*$/, what: "an absolute path" };
const ANNOTATION = {
  pattern: /^([a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?\/)?[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?$/,
  what: "an annotation's name such as openshift.io/sa.scc.uid-range",
};

type Given = FlagValues<typeof FLAGS>;
type TextFlag = Exclude<keyof Given, "leader-elect">;

/** Reads values by the name of their flag. */
class Flags {
  constructor(
    private readonly read: Reader,
    private readonly given: Given,
  ) {}

  readonly port = (flag: TextFlag) => this.read.port(`--${flag}`, this.given[flag]);
  readonly address = (flag: TextFlag) => this.read.address(flag, this.given[flag]);
  readonly integer = (flag: TextFlag) => this.read.integer(flag, this.given[flag]);
  readonly positive = (flag: TextFlag) => this.read.positive(flag, this.given[flag]);
  readonly oneOf = <T extends string>(flag: TextFlag, known: readonly T[]) =>
    this.read.oneOf(flag, this.given[flag], known);
  readonly matching = (flag: TextFlag, wanted: { pattern: RegExp; what: string }) =>
    this.read.matching(flag, this.given[flag], wanted);
}

function readWebhook(flags: Flags): WebhookSettings {
  return {
    port: flags.port("webhook-port"),
    service: flags.matching("webhook-service", LABEL),
    configuration: flags.matching("webhook-configuration", NAME),
    certificates: flags.oneOf("webhook-certificates", CERTIFICATE_SOURCES),
    certificateSecret: flags.matching("webhook-certificate-secret", NAME),
    certificateDir: flags.matching("webhook-certificate-dir", PATH),
    certificateValidityMs: flags.positive("webhook-certificate-validity-hours") * HOUR_MS,
  };
}

/** Reads the command line and the environment. @throws an Error that lists everything that is wrong */
export function readSettings(args: readonly string[], environment: Environment): Settings {
  const read = new Reader(environment);
  const { values, problems } = parseFlags(args, FLAGS);
  read.problems.push(...problems);
  const flags = new Flags(read, values);
  const settings: Settings = {
    logLevel: flags.oneOf("log-level", LOG_LEVELS),
    logFormat: flags.oneOf("log-format", LOG_FORMATS),
    cniNamespace: flags.matching("cni-namespace", LABEL),
    linkerdNamespace: flags.matching("linkerd-namespace", LABEL),
    cniKubeconfig: flags.matching("cni-kubeconfig", PATH),
    uidRangeAnnotation: flags.matching("namespace-uid-range-annotation", ANNOTATION),
    proxyUidOffset: flags.integer("linkerd-proxy-uid-offset"),
    webhook: readWebhook(flags),
    metrics: values["metrics-bind-address"] === NO_ADDRESS ? undefined : flags.address("metrics-bind-address"),
    health: flags.address("health-probe-bind-address"),
    leaderElect: values["leader-elect"],
    rate: {
      perSecond: flags.positive("requests-per-second"),
      burst: Math.max(1, flags.positive("request-burst")),
    },
    podNamespace: read.required("POD_NAMESPACE", "set it from metadata.namespace"),
    podName: read.required("POD_NAME", "set it from metadata.name"),
    cluster: read.cluster(),
  };
  read.finish();
  return settings;
}
