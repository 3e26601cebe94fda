import { base64, fromBase64 } from "../../../host/base64";
import type { KubernetesClient } from "../../../kubernetes/client";
import { resource } from "../../../kubernetes/resources";
import type { KubernetesObject, ObjectMeta } from "../../../kubernetes/types";
import type { Clock } from "../../../process/clock";
import type { Log } from "../../../process/log";
import type { Counter, Registry } from "../../../process/metrics";
import { textOf, utf8 } from "../../../system/bytes";
import { ConflictBackoff } from "../conflict-backoff";

interface WebhookConfiguration extends KubernetesObject {
  readonly metadata?: ObjectMeta & {
    readonly managedFields?: readonly { readonly manager?: string; readonly fieldsV1?: object }[];
  };
  readonly webhooks?: readonly { readonly name: string; readonly clientConfig?: { readonly caBundle?: string } }[];
}

export const CONFIGURATIONS = resource<WebhookConfiguration>(
  "admissionregistration.k8s.io/v1",
  "MutatingWebhookConfiguration",
  "mutatingwebhookconfigurations",
);
const FIELD_MANAGER = "linkerd-multus-certificates";

/** Annotations that make another program set the `caBundle`: cert-manager's and OpenShift's. */
const INJECTED = /^(cert-manager\.io\/inject-|service\.beta\.openshift\.io\/inject-cabundle$)/;

/** A correction undone later than this counts as the first again. */
const QUIET_MS = 300_000;

const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
/** Certificates in the `caBundle`: this one, and former ones that a replica may still serve. */
const MOST = 4;
/** The server's certificate; intermediates may follow it. */
const firstIn = (text: string) => text.match(PEM)?.[0] ?? "";

/** Other field managers that have written a `caBundle`. */
function otherWriters({ metadata = {} }: WebhookConfiguration): string {
  const others = (metadata.managedFields ?? []).filter(
    ({ manager, fieldsV1 = {} }) => manager !== FIELD_MANAGER && JSON.stringify(fieldsV1).includes('"f:caBundle"'),
  );
  return others.map(({ manager = "" }) => manager).join(", ");
}

interface CaBundleDeps {
  readonly client: KubernetesClient;
  readonly clock: Clock;
  readonly log: Log;
  readonly registry: Registry;
}

/** Sets the `caBundle` of every webhook in the configuration, and no other field. */
export class CaBundle {
  private readonly conflicts = new ConflictBackoff();
  private readonly corrections: Counter;
  private wanted = "";
  /** Another program also writes it. */
  private contested = false;
  private correctedAt = Number.NEGATIVE_INFINITY;

  /** @param name of the MutatingWebhookConfiguration */
  constructor(
    private readonly name: string,
    private readonly deps: CaBundleDeps,
  ) {
    const { registry } = deps;
    this.corrections = registry.counter({
      name: "ca_bundle_corrections_total",
      help: "Times that the caBundle of the webhook configuration was set.",
    });
    const contested = {
      name: "ca_bundle_contested",
      help: "Whether another program keeps changing the caBundle, or is asked to by an annotation.",
    };
    registry.gauge(contested, () => (this.contested ? 1 : 0));
  }

  /** Milliseconds before the next correction, because another program undoes each one. */
  get waitMs(): number {
    return this.conflicts.wait(this.name, this.wanted, this.deps.clock.now());
  }

  /**
   * Adds what is missing of these certificates (PEM), unless another program sets the `caBundle` or there is no
   * configuration. The latest others stay, for replicas that serve them.
   */
  async ensure(certificates: readonly string[]): Promise<void> {
    const first = certificates.map(firstIn);
    this.wanted = first.join("");
    if (this.waitMs > 0) return;
    const { client, clock, log } = this.deps;
    const { name } = this;
    const found = (await client.find(CONFIGURATIONS, { name })) ?? {};
    const { metadata = {}, webhooks = [] } = found;
    const annotation = Object.keys(metadata.annotations ?? {}).find((key) => INJECTED.test(key));
    if (annotation !== undefined) {
      this.contest(`has the annotation ${annotation}, which lets another program set its caBundle: leaving it alone`);
      return;
    }
    const bundles = webhooks.map(({ clientConfig }) => textOf(fromBase64(clientConfig?.caBundle ?? "")));
    if (bundles.every((bundle) => first.every((pem) => bundle.includes(pem)))) {
      if (this.contested && clock.now() - this.correctedAt >= QUIET_MS) {
        log.info(`no other program changes the caBundle of the MutatingWebhookConfiguration ${name} any more`);
        this.contested = false;
      }
      return;
    }
    const trusted = new Set([...first, ...(bundles.join("").match(PEM) ?? [])]);
    const caBundle = base64(
      utf8(
        [...trusted]
          .slice(0, MOST)
          .map((pem) => `${pem}\n`)
          .join(""),
      ),
    );
    const changed = webhooks.map((webhook) => ({ name: webhook.name, clientConfig: { caBundle } }));
    const applying = { fieldManager: FIELD_MANAGER, force: true };
    await client.apply(CONFIGURATIONS, { metadata: { name }, webhooks: changed }, applying);
    this.corrections.inc();
    this.correctedAt = clock.now();
    this.conflicts.wrote(name, this.wanted, clock.now());
    if (this.waitMs > 0) {
      const writer = otherWriters(found);
      const who = writer === "" ? "another client" : writer;
      this.contest(
        `has a caBundle that ${who} keeps changing: correcting it less and less often, at least once a minute`,
      );
    }
  }

  /** Logs once, until it is right again. */
  private contest(what: string): void {
    if (!this.contested) this.deps.log.warn(`the MutatingWebhookConfiguration ${this.name} ${what}`);
    this.contested = true;
  }
}
