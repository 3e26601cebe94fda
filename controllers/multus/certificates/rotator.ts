import { reasonOf } from "../../../cni/errors";
import { backoffMs } from "../../../kubernetes/backoff";
import type { KubernetesClient } from "../../../kubernetes/client";
import { isAlreadyExists, isConflict, isNotFound } from "../../../kubernetes/errors";
import { type InformerDeps, inform } from "../../../kubernetes/informer";
import { resource, resources } from "../../../kubernetes/resources";
import type { KubernetesObject, SecretObject } from "../../../kubernetes/types";
import { Loop } from "../../../process/loop";
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
  /** Where the Secret and the webhook's Service are. */
  readonly namespace: string;
  readonly secret: string;
  readonly service: string;
  /** Name of the MutatingWebhookConfiguration. */
  readonly configuration: string;
  /** How long a certificate is valid, in milliseconds. */
  readonly validMs: number;
}

interface Deps extends InformerDeps {
  readonly client: KubernetesClient;
  readonly served: ServedCertificate<ServingCertificate>;
}

interface WebhookConfiguration extends KubernetesObject {
  readonly webhooks?: readonly { readonly name: string; readonly clientConfig?: { readonly caBundle?: string } }[];
}

const CONFIGURATIONS = resource<WebhookConfiguration>(
  "admissionregistration.k8s.io/v1",
  "MutatingWebhookConfiguration",
  "mutatingwebhookconfigurations",
);
const FIELD_MANAGER = "linkerd-multus-certificates";

const YEAR_MS = 365 * 86_400_000;
const AUTHORITY_VALID_MS = 10 * YEAR_MS;
/** Even where no change is reported, the Secret and the configuration are read so often. */
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

/** What is written to the Secret. */
interface Written {
  readonly pair: TlsPair;
  readonly trusted: readonly string[];
  /** Key of the authority that signs. */
  readonly caKey: string | undefined;
}

type Data = Readonly<Record<string, string | undefined>>;

const base64 = (text: string) => Buffer.from(text, "utf8").toString("base64");
/** The `caBundle`, and the Secret's `ca.crt`. */
const bundleOf = (trusted: readonly string[]) => base64(trusted.join(""));

/** Reads the Secret's `data`. @throws where clients that call it by the DNS name would refuse what it serves */
function decode(data: Data, name: string): RotationState {
  const text = (key: string) => Buffer.from(data[key] ?? "", "base64").toString("utf8");
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
    "tls.crt": base64(pair.cert),
    "tls.key": base64(pair.key),
    "ca.crt": bundleOf(trusted),
    "ca.key": caKey === undefined ? null : base64(caKey),
    // Versions before this one kept the next certificate here.
    "next.crt": null,
    "next.key": null,
  };
}

/**
 * Makes and renews the webhook's certificate in a Secret, and keeps the `caBundle` of the webhook configuration up to
 * date. It runs in every replica: whoever writes first has done it for all, and the others go by the Secret.
 */
export class CertificateRotator {
  /** The name by which the API server calls the Service. */
  private readonly name: string;
  private readonly settleMs: number;
  private readonly loop: Loop;
  private failures = 0;
  private problem = "";
  /** What was last seen to be served and trusted, and since when. */
  private settled = { what: "", since: 0 };
  private trusted: readonly string[] = [];

  constructor(
    private readonly options: RotatorOptions,
    private readonly deps: Deps,
  ) {
    this.name = `${options.service}.${options.namespace}.svc`;
    this.settleMs = Math.min(LONGEST_SETTLE_MS, options.validMs / SETTLES_IN_A_LIFE);
    this.loop = new Loop(() => this.attempt(), deps);
  }

  /** Runs until the signal is given. */
  async run(): Promise<void> {
    const { namespace, secret, configuration } = this.options;
    const named = (name: string) => ({ fieldSelector: `metadata.name=${name}`, take: () => this.loop.wake() });
    await Promise.all([
      this.loop.run(),
      inform({ resource: resources.secrets, namespace, ...named(secret) }, this.deps),
      inform({ resource: CONFIGURATIONS, ...named(configuration) }, this.deps),
    ]);
  }

  /** @returns milliseconds until the next attempt */
  private async attempt(): Promise<number> {
    const { clock, log } = this.deps;
    try {
      const pauseMs = await this.reconcile();
      this.failures = 0;
      this.problem = "";
      return Math.min(pauseMs, CHECK_EVERY_MS);
    } catch (error) {
      const problem = reasonOf(error);
      if (problem !== this.problem) log.warn(`cannot reconcile the webhook's certificate: ${problem}`);
      this.problem = problem;
      this.failures += 1;
      return backoffMs(RETRY, this.failures, clock.random());
    }
  }

  /** Reads everything anew and takes the next step. @returns milliseconds until the step after it */
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
    const data = encode(await this.carryOut(step, state));
    // Where another replica was faster, what that one wrote counts.
    if (await this.write(found, data)) log.info(DONE[step.kind]);
    return 0;
  }

  private read(found: SecretObject | undefined): RotationState | undefined {
    if (found === undefined) return undefined;
    try {
      return decode(found.data ?? {}, this.name);
    } catch (error) {
      const { namespace, secret } = this.options;
      this.deps.log.warn(`Secret ${namespace}/${secret} is not usable and is replaced: ${reasonOf(error)}`);
      return undefined;
    }
  }

  /** Has clients trust what the Secret says, and notes for how long they have. */
  private async publish({ serving, trusted }: RotationState): Promise<void> {
    const bundle = bundleOf(trusted);
    const wasRight = await this.ensureCaBundle(bundle);
    const what = serving.cert + bundle;
    this.trusted = trusted;
    if (!wasRight || this.settled.what !== what) this.settled = { what, since: this.deps.clock.now() };
  }

  /**
   * Sets the `caBundle` of every webhook in the configuration, and no other field.
   * @returns whether it was right before; so it is where there is no configuration
   */
  private async ensureCaBundle(caBundle: string): Promise<boolean> {
    const { client } = this.deps;
    const name = this.options.configuration;
    const { webhooks = [] } = (await client.find(CONFIGURATIONS, { name })) ?? {};
    if (webhooks.every(({ clientConfig }) => clientConfig?.caBundle === caBundle)) return true;
    const changed = webhooks.map((webhook) => ({ name: webhook.name, clientConfig: { caBundle } }));
    const applying = { fieldManager: FIELD_MANAGER, force: true };
    await client.apply(CONFIGURATIONS, { metadata: { name }, webhooks: changed }, applying);
    return false;
  }

  /** What the Secret holds after a step. */
  private async carryOut(
    step: Exclude<RotationStep, { kind: "wait" }>,
    state: RotationState | undefined,
  ): Promise<Written> {
    const now = this.deps.clock.date();
    const { validMs } = this.options;
    const names = [this.name, `${this.name}.cluster.local`];
    const trusted = state?.trusted ?? this.trusted;
    if (step.kind === "renew") {
      return { pair: await issueCertificate(names, step.signer, now, validMs), trusted, caKey: step.signer.key };
    }
    if (step.kind === "drop-authorities") {
      const { serving, signer } = step;
      return { pair: serving, trusted: [serving.ca], caKey: signer?.cert === serving.ca ? signer.key : undefined };
    }
    const authority = await createAuthority(now, Math.max(AUTHORITY_VALID_MS, 2 * validMs));
    if (step.kind === "create") {
      const pair = await issueCertificate(names, authority, now, validMs);
      return { pair, trusted: [authority.cert], caKey: authority.key };
    }
    const all = new Set([...trusted, step.serving.ca, authority.cert]);
    return { pair: step.serving, trusted: [...all], caKey: authority.key };
  }

  /** Writes where the Secret is still the one that was read. @returns whether it was */
  private async write(before: SecretObject | undefined, data: Record<string, string | null>): Promise<boolean> {
    const { client } = this.deps;
    const { namespace, secret: name } = this.options;
    try {
      if (before === undefined) {
        const labels = { "app.kubernetes.io/managed-by": "linkerd-multus" };
        const given = Object.entries(data).filter((entry): entry is [string, string] => entry[1] !== null);
        const metadata = { name, namespace, labels };
        await client.create(resources.secrets, {
          metadata,
          type: "kubernetes.io/tls",
          data: Object.fromEntries(given),
        });
      } else {
        const { resourceVersion, uid } = before.metadata ?? {};
        const body = { metadata: { resourceVersion, uid }, data };
        await client.patch(resources.secrets, { namespace, name }, { type: "merge", body });
      }
      return true;
    } catch (error) {
      if (isConflict(error) || isAlreadyExists(error) || (before !== undefined && isNotFound(error))) return false;
      throw error;
    }
  }
}
