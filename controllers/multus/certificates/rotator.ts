import { reasonOf } from "../../../cni/errors";
import { base64, fromBase64 } from "../../../host/base64";
import { backoffMs } from "../../../kubernetes/backoff";
import type { KubernetesClient } from "../../../kubernetes/client";
import { isConflict, isNotFound } from "../../../kubernetes/errors";
import { type InformerDeps, inform } from "../../../kubernetes/informer";
import { resources } from "../../../kubernetes/resources";
import type { SecretObject } from "../../../kubernetes/types";
import { Loop } from "../../../process/loop";
import type { Registry } from "../../../process/metrics";
import { textOf, utf8 } from "../../../system/bytes";
import { CaBundle, CONFIGURATIONS } from "./ca-bundle";
import { isFor, readCertificate, readPair, splitCertificates, type TlsPair } from "./certificate";
import { issueCertificate } from "./issue";
import type { ServedCertificate } from "./served";

interface RotatorOptions {
  /** Namespace of the Secret and of the webhook's Service. */
  readonly namespace: string;
  readonly secret: string;
  readonly service: string;
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

/** Interval at which the Secret and the configuration are read without a reported change. */
const CHECK_EVERY_MS = 60_000;
const RETRY = { firstMs: 500, longestMs: 30_000 };
/** The time until every client has seen a change of the `caBundle`: at most this, and a part of the certificate's life. */
const LONGEST_SETTLE_MS = 5 * 60_000;
const SETTLES_IN_A_LIFE = 60;

/** What the Secret holds. */
interface State extends TlsPair {
  readonly validTo: number;
  /** When a third of its life is left, in milliseconds since 1970. */
  readonly renewAt: number;
  /** The certificates that clients should trust, PEM. */
  readonly trusted: string;
}

const encoded = (text: string) => base64(utf8(text));

/** Reads the Secret's `data`. @throws if clients that use the DNS name would refuse its certificate */
function decode(data: Readonly<Record<string, string | undefined>>, name: string): State {
  const text = (key: string) => textOf(fromBase64(data[key] ?? ""));
  const pair = { cert: text("tls.crt"), key: text("tls.key") };
  const certificate = readPair(pair, "tls");
  if (!isFor(certificate, name)) throw new Error(`tls.crt is not valid for ${name}`);
  const { validFrom, validTo } = certificate;
  return { ...pair, validTo, renewAt: validTo - (validTo - validFrom) / 3, trusted: text("ca.crt") || pair.cert };
}

/** The certificates of a text that can be read and have not expired, each once. */
function valid(text: string, now: number): readonly string[] {
  return [...new Set(splitCertificates(text))].filter((pem) => {
    try {
      return now < readCertificate(pem).validTo;
    } catch {
      return false;
    }
  });
}

/**
 * Makes and renews the webhook's self-signed certificate in a Secret, and keeps the `caBundle` of the webhook
 * configuration up to date. The `caBundle` has a new certificate before a replica serves it, and the former one until
 * that expires. It runs in every replica: the first write wins, and the others follow the Secret.
 */
export class CertificateRotator {
  /** The name by which the API server calls the Service. */
  private readonly name: string;
  private readonly settleMs: number;
  private readonly loop: Loop;
  private readonly caBundle: CaBundle;
  private failures = 0;
  private problem = "";
  /** The latest certificate that was published, and since when. */
  private published = { cert: "", since: 0 };

  constructor(
    private readonly options: RotatorOptions,
    private readonly deps: CertificateRotatorDeps,
  ) {
    this.name = `${options.service}.${options.namespace}.svc`;
    this.settleMs = Math.min(LONGEST_SETTLE_MS, options.validMs / SETTLES_IN_A_LIFE);
    this.caBundle = new CaBundle(options.configuration, deps);
    this.loop = new Loop(() => this.attempt(), deps);
  }

  /** Runs until the signal is given. */
  async run(): Promise<void> {
    const { namespace, secret, configuration } = this.options;
    const named = (name: string, take: () => void) => ({ fieldSelector: `metadata.name=${name}`, take });
    const wake = () => this.loop.wake();
    const wakeUnlessContested = () => {
      if (this.caBundle.waitMs === 0) wake();
    };
    await Promise.all([
      this.loop.run(),
      inform({ resource: resources.secrets, namespace, ...named(secret, wake) }, this.deps),
      inform({ resource: CONFIGURATIONS, ...named(configuration, wakeUnlessContested) }, this.deps),
    ]);
  }

  /** @returns milliseconds until the next attempt */
  private async attempt(): Promise<number> {
    const { clock, log } = this.deps;
    try {
      const pauseMs = await this.reconcile();
      this.failures = 0;
      this.problem = "";
      return Math.min(pauseMs, this.caBundle.waitMs || CHECK_EVERY_MS, CHECK_EVERY_MS);
    } catch (error) {
      const problem = reasonOf(error);
      if (problem !== this.problem) log.warn(`cannot reconcile the webhook's certificate: ${problem}`);
      this.problem = problem;
      this.failures += 1;
      return backoffMs(RETRY, this.failures, clock.random());
    }
  }

  /** Reads everything again and takes the next step. @returns milliseconds until the following step */
  private async reconcile(): Promise<number> {
    const { client, clock, served } = this.deps;
    const { namespace, secret } = this.options;
    const now = clock.date().getTime();
    const found = await client.find(resources.secrets, { namespace, name: secret });
    const state = this.read(found);
    if (state === undefined || state.renewAt <= now) {
      await this.renew(found, state?.trusted ?? "");
      return 0;
    }
    const { cert, key, validTo, renewAt, trusted } = state;
    await this.caBundle.ensure(encoded(trusted));
    if (cert !== this.published.cert) this.published = { cert, since: clock.now() };
    const hasServable = served.current !== undefined && now < served.current.validTo;
    const settlesMs = hasServable ? this.published.since + this.settleMs - clock.now() : 0;
    if (settlesMs > 0 && cert !== served.current?.cert) return settlesMs;
    served.serve({ cert, key, validTo });
    return renewAt - now;
  }

  private read(found: SecretObject | undefined): State | undefined {
    // The chart creates it empty.
    if (found?.data === undefined) return undefined;
    try {
      return decode(found.data, this.name);
    } catch (error) {
      const { namespace, secret } = this.options;
      this.deps.log.warn(`Secret ${namespace}/${secret} is not usable and is replaced: ${reasonOf(error)}`);
      return undefined;
    }
  }

  /**
   * Writes another certificate if the Secret has not changed since it was read; else another replica was faster. The
   * chart creates the Secret: permission to create this Secret would allow creating any, including a token of any service
   * account in the namespace.
   */
  private async renew(before: SecretObject | undefined, formerlyTrusted: string): Promise<void> {
    const { client, clock, log } = this.deps;
    const { namespace, secret: name, validMs } = this.options;
    if (before === undefined) {
      throw new Error(`Secret ${namespace}/${name} does not exist: install the chart again, which makes it empty`);
    }
    const now = clock.date();
    const { cert, key } = issueCertificate([this.name, `${this.name}.cluster.local`], now, validMs);
    // If the Secret is lost, another replica serves a certificate that only the caBundle still has.
    const trusted = [cert, ...valid(formerlyTrusted + (await this.caBundle.trusted()), now.getTime())];
    const data = { "tls.crt": encoded(cert), "tls.key": encoded(key), "ca.crt": encoded(trusted.join("")) };
    const { resourceVersion, uid } = before.metadata ?? {};
    try {
      const body = { metadata: { resourceVersion, uid }, data };
      await client.patch(resources.secrets, { namespace, name }, { type: "merge", body });
      log.info("made another certificate for the webhook");
    } catch (error) {
      if (!isConflict(error) && !isNotFound(error)) throw error;
    }
  }
}
