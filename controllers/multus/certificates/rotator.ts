import { reasonOf } from "../../../cni/errors";
import { base64, fromBase64 } from "../../../host/base64";
import type { KubernetesClient } from "../../../kubernetes/client";
import { isConflict, isNotFound } from "../../../kubernetes/errors";
import { type InformerDeps, inform } from "../../../kubernetes/informer";
import { resources } from "../../../kubernetes/resources";
import type { SecretObject } from "../../../kubernetes/types";
import { WorkQueue } from "../../../kubernetes/work-queue";
import type { Registry } from "../../../process/metrics";
import { textOf, utf8 } from "../../../system/bytes";
import { CaBundle, CONFIGURATIONS } from "./ca-bundle";
import { issueCertificate } from "./issue";
import { type Servable, type ServedCertificate, servable } from "./served";

interface RotatorOptions {
  /** Namespace of the Secret. */
  readonly namespace: string;
  readonly secret: string;
  /** DNS name by which the API server calls the webhook. */
  readonly name: string;
  /** Name of the MutatingWebhookConfiguration. */
  readonly configuration: string;
  /** How long a certificate is valid, in milliseconds. */
  readonly validMs: number;
}

interface CertificateRotatorDeps extends InformerDeps {
  readonly client: KubernetesClient;
  readonly served: ServedCertificate;
  readonly registry: Registry;
}

/** The only key of the queue. */
const CERTIFICATE = "certificate";
/** Interval at which the Secret and the configuration are read without a reported change. */
const CHECK_EVERY_MS = 60_000;
const BACKOFF = { firstMs: 500, longestMs: 30_000 };
/** The time until every client has seen a change of the `caBundle`: at most this, and a part of the certificate's life. */
const LONGEST_SETTLE_MS = 5 * 60_000;
const SETTLES_IN_A_LIFE = 60;

/** When a third of its life is left, in milliseconds since 1970. */
const renewalOf = ({ validFrom, validTo }: Servable) => validTo - (validTo - validFrom) / 3;

/**
 * Makes and renews the webhook's self-signed certificate in a Secret, and keeps the `caBundle` of the webhook
 * configuration up to date. The `caBundle` has a new certificate before a replica serves it, and keeps the former one.
 * It runs in every replica: the first write wins, and the others follow the Secret.
 */
export class CertificateRotator {
  private readonly settleMs: number;
  private readonly queue: WorkQueue;
  private readonly caBundle: CaBundle;
  /** The latest certificate that was published, and since when. */
  private published = { cert: "", since: 0 };

  constructor(
    private readonly options: RotatorOptions,
    private readonly deps: CertificateRotatorDeps,
  ) {
    this.settleMs = Math.min(LONGEST_SETTLE_MS, options.validMs / SETTLES_IN_A_LIFE);
    this.caBundle = new CaBundle(options.configuration, deps);
    const failed = (_: string, error: unknown, failures: number) => {
      if (failures === 1) deps.log.warn(`cannot reconcile the webhook's certificate: ${reasonOf(error)}`);
    };
    this.queue = new WorkQueue(() => this.reconcile(), { ...deps, failed }, { backoff: BACKOFF });
  }

  /** Runs until the signal is given. */
  async run(): Promise<void> {
    const { namespace, secret, configuration } = this.options;
    const take = () => this.queue.add(CERTIFICATE);
    const named = (name: string) => ({ fieldSelector: `metadata.name=${name}`, take });
    take();
    await Promise.all([
      this.queue.run(),
      inform({ resource: resources.secrets, namespace, ...named(secret) }, this.deps),
      inform({ resource: CONFIGURATIONS, ...named(configuration) }, this.deps),
    ]);
  }

  /** Reads everything again and takes the next step. @returns milliseconds until the following step */
  private async reconcile(): Promise<number> {
    const { client, clock, served } = this.deps;
    const { namespace, secret } = this.options;
    const now = clock.date().getTime();
    const found = await client.find(resources.secrets, { namespace, name: secret });
    const pair = this.read(found);
    if (pair === undefined || renewalOf(pair) <= now) {
      await this.renew(found);
      return 0;
    }
    const { current } = served;
    await this.caBundle.ensure(current === undefined ? [pair.cert] : [pair.cert, current.cert]);
    if (pair.cert !== this.published.cert) this.published = { cert: pair.cert, since: clock.now() };
    const isServing = current !== undefined && now < current.validTo;
    const settlesMs = isServing && pair.cert !== current.cert ? this.published.since + this.settleMs - clock.now() : 0;
    if (settlesMs <= 0) served.serve(pair);
    const nextMs = settlesMs > 0 ? settlesMs : renewalOf(pair) - now;
    return Math.min(nextMs, this.caBundle.waitMs || CHECK_EVERY_MS, CHECK_EVERY_MS);
  }

  private read(found: SecretObject | undefined): Servable | undefined {
    // The chart creates it empty.
    if (found?.data === undefined) return undefined;
    const text = (key: string) => textOf(fromBase64(found.data?.[key] ?? ""));
    const { namespace, secret, name } = this.options;
    try {
      return servable({ cert: text("tls.crt"), key: text("tls.key") }, name);
    } catch (error) {
      this.deps.log.warn(`Secret ${namespace}/${secret} is not usable and is replaced: ${reasonOf(error)}`);
      return undefined;
    }
  }

  /**
   * Writes another certificate if the Secret has not changed since it was read; else another replica was faster. The
   * chart creates the Secret: permission to create this Secret would allow creating any, including a token of any service
   * account in the namespace.
   */
  private async renew(before: SecretObject | undefined): Promise<void> {
    const { client, clock, log } = this.deps;
    const { namespace, secret, name, validMs } = this.options;
    if (before === undefined) {
      throw new Error(`Secret ${namespace}/${secret} does not exist: install the chart again, which makes it empty`);
    }
    const { cert, key } = issueCertificate([name, `${name}.cluster.local`], clock.date(), validMs);
    const data = { "tls.crt": base64(utf8(cert)), "tls.key": base64(utf8(key)) };
    const { resourceVersion, uid } = before.metadata ?? {};
    try {
      const body = { metadata: { resourceVersion, uid }, data };
      await client.patch(resources.secrets, { namespace, name: secret }, { type: "merge", body });
      log.info("made another certificate for the webhook");
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) throw error;
    }
  }
}
