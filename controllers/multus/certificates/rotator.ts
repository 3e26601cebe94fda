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
import {
  readAuthority,
  readServingCertificate,
  type ServingCertificate,
  splitCertificates,
  type TlsPair,
} from "./certificate";
import { createAuthority, issueCertificate } from "./issue";
import { planRotation, type RotationState, type RotationStep } from "./plan-rotation";
import type { ServedCertificate } from "./served";

export interface RotatorOptions {
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
  readonly served: ServedCertificate<ServingCertificate>;
  readonly registry: Registry;
}

const YEAR_MS = 365 * 86_400_000;
const AUTHORITY_VALID_MS = 10 * YEAR_MS;
/** Interval at which the Secret and the configuration are read without a reported change. */
const CHECK_EVERY_MS = 60_000;
const RETRY = { firstMs: 500, longestMs: 30_000 };
const LONGEST_SETTLE_MS = 5 * 60_000;
const SETTLES_IN_A_LIFE = 60;

const DONE: Readonly<Record<Exclude<RotationStep["kind"], "wait">, string>> = {
  create: "made a certificate authority and the webhook's certificate",
  "add-authority": "made another certificate authority, which signs the webhook's next certificate",
  renew: "renewed the webhook's certificate",
  "drop-authorities": "removed the former certificate authority",
};

/** The content of the Secret. */
interface Written {
  readonly pair: TlsPair;
  readonly trusted: readonly string[];
  /** Key of the signing authority. */
  readonly caKey: string | undefined;
}

type Data = Readonly<Record<string, string | undefined>>;

const encoded = (text: string) => base64(utf8(text));
/** The `caBundle`, and the Secret's `ca.crt`. */
const bundleOf = (trusted: readonly string[]) => encoded(trusted.join(""));

/** Reads the Secret's `data`. @throws if clients that use the DNS name would refuse its certificate */
function decode(data: Data, name: string): RotationState {
  const text = (key: string) => textOf(fromBase64(data[key] ?? ""));
  const trusted = splitCertificates(text("ca.crt"));
  const pair = { cert: text("tls.crt"), key: text("tls.key") };
  return {
    serving: readServingCertificate(pair, "tls", { name, authorities: trusted }),
    trusted,
    signer: readAuthority(text("ca.key"), trusted),
  };
}

/** The Secret's `data`; null removes a member. */
function encode({ pair, trusted, caKey }: Written): Record<string, string | null> {
  return {
    "tls.crt": encoded(pair.cert),
    "tls.key": encoded(pair.key),
    "ca.crt": bundleOf(trusted),
    "ca.key": caKey === undefined ? null : encoded(caKey),
  };
}

/**
 * Makes and renews the webhook's certificate in a Secret, and keeps the `caBundle` of the webhook configuration up to
 * date. It runs in every replica: the first write wins, and the others follow the Secret.
 */
export class CertificateRotator {
  /** The name by which the API server calls the Service. */
  private readonly name: string;
  private readonly settleMs: number;
  private readonly loop: Loop;
  private readonly caBundle: CaBundle;
  private failures = 0;
  private problem = "";
  /** The last seen certificate and bundle, and since when. */
  private settled = { what: "", since: 0 };
  private trusted: readonly string[] = [];

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
    const { client, clock, log, served } = this.deps;
    const { namespace, secret, validMs } = this.options;
    const found = await client.find(resources.secrets, { namespace, name: secret });
    const state = this.read(found);
    if (state !== undefined) {
      served.serve(state.serving);
      await this.publish(state);
    }
    const settledMs = clock.now() - this.settled.since;
    const observed = { now: clock.date().getTime(), validMs, settledMs, settleMs: this.settleMs };
    const step = planRotation(state, served.current, observed);
    if (step.kind === "wait") return step.ms;
    const data = encode(this.carryOut(step, state));
    // If another replica was faster, its result counts.
    if (await this.write(found, data)) log.info(DONE[step.kind]);
    return 0;
  }

  private read(found: SecretObject | undefined): RotationState | undefined {
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

  /** Makes clients trust the Secret's authorities, and notes since when. */
  private async publish({ serving, trusted }: RotationState): Promise<void> {
    const bundle = bundleOf(trusted);
    const wasRight = await this.caBundle.ensure(bundle);
    const what = serving.cert + bundle;
    this.trusted = trusted;
    if (!wasRight || this.settled.what !== what) this.settled = { what, since: this.deps.clock.now() };
  }

  /** The Secret's content after a step. */
  private carryOut(step: Exclude<RotationStep, { kind: "wait" }>, state: RotationState | undefined): Written {
    const now = this.deps.clock.date();
    const { validMs } = this.options;
    const names = [this.name, `${this.name}.cluster.local`];
    const trusted = state?.trusted ?? this.trusted;
    if (step.kind === "renew") {
      return { pair: issueCertificate(names, step.signer, now, validMs), trusted, caKey: step.signer.key };
    }
    if (step.kind === "drop-authorities") {
      const { serving, signer } = step;
      return { pair: serving, trusted: [serving.ca], caKey: signer?.cert === serving.ca ? signer.key : undefined };
    }
    const authority = createAuthority(now, Math.max(AUTHORITY_VALID_MS, 2 * validMs));
    if (step.kind === "create") {
      const pair = issueCertificate(names, authority, now, validMs);
      return { pair, trusted: [authority.cert], caKey: authority.key };
    }
    const all = new Set([...trusted, step.serving.ca, authority.cert]);
    return { pair: step.serving, trusted: [...all], caKey: authority.key };
  }

  /**
   * Writes if the Secret has not changed since it was read. The chart creates it: permission to create this Secret
   * would allow creating any, including a token of any service account in the namespace. @returns whether it was
   * unchanged
   */
  private async write(before: SecretObject | undefined, data: Record<string, string | null>): Promise<boolean> {
    const { client } = this.deps;
    const { namespace, secret: name } = this.options;
    if (before === undefined) {
      throw new Error(`Secret ${namespace}/${name} does not exist: install the chart again, which makes it empty`);
    }
    const { resourceVersion, uid } = before.metadata ?? {};
    try {
      const body = { metadata: { resourceVersion, uid }, data };
      await client.patch(resources.secrets, { namespace, name }, { type: "merge", body });
      return true;
    } catch (error) {
      if (isConflict(error) || isNotFound(error)) return false;
      throw error;
    }
  }
}
