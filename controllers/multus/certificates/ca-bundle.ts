import { base64, fromBase64 } from "../../../host/base64";
import type { KubernetesClient } from "../../../kubernetes/client";
import { resource } from "../../../kubernetes/resources";
import type { KubernetesObject } from "../../../kubernetes/types";
import type { Clock } from "../../../process/clock";
import type { Log } from "../../../process/log";
import type { Counter, Registry } from "../../../process/metrics";
import { textOf, utf8 } from "../../../system/bytes";
import { ConflictBackoff } from "../conflict-backoff";

interface WebhookConfiguration extends KubernetesObject {
  readonly webhooks?: readonly { readonly name: string; readonly clientConfig?: { readonly caBundle?: string } }[];
}

export const CONFIGURATIONS = resource<WebhookConfiguration>(
  "admissionregistration.k8s.io/v1",
  "MutatingWebhookConfiguration",
  "mutatingwebhookconfigurations",
);
const FIELD_MANAGER = "linkerd-multus-certificates";

const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
/** Certificates in the `caBundle`: this one, and former ones that a replica may still serve. */
const MOST = 4;
/** The server's certificate; intermediates may follow it. */
const firstIn = (text: string) => text.match(PEM)?.[0] ?? "";

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

  /** @param name of the MutatingWebhookConfiguration */
  constructor(
    private readonly name: string,
    private readonly deps: CaBundleDeps,
  ) {
    this.corrections = deps.registry.counter({
      name: "ca_bundle_corrections_total",
      help: "Times that the caBundle of the webhook configuration was set.",
    });
  }

  /** Milliseconds before the next correction, because another program undoes each one. */
  get waitMs(): number {
    return this.conflicts.wait(this.name, this.wanted, this.deps.clock.now());
  }

  /**
   * Adds what is missing of these certificates (PEM), unless there is no configuration. The latest others stay, for
   * replicas that serve them.
   */
  async ensure(certificates: readonly string[]): Promise<void> {
    const first = certificates.map(firstIn);
    this.wanted = first.join("");
    if (this.waitMs > 0) return;
    const { client, clock, log } = this.deps;
    const { name } = this;
    const { webhooks = [] } = (await client.find(CONFIGURATIONS, { name })) ?? {};
    const bundles = webhooks.map(({ clientConfig }) => textOf(fromBase64(clientConfig?.caBundle ?? "")));
    if (bundles.every((bundle) => first.every((pem) => bundle.includes(pem)))) return;
    const trusted = [...new Set([...first, ...(bundles.join("").match(PEM) ?? [])])].slice(0, MOST);
    const caBundle = base64(utf8(trusted.map((pem) => `${pem}\n`).join("")));
    const changed = webhooks.map((webhook) => ({ name: webhook.name, clientConfig: { caBundle } }));
    const applying = { fieldManager: FIELD_MANAGER, force: true };
    await client.apply(CONFIGURATIONS, { metadata: { name }, webhooks: changed }, applying);
    this.corrections.inc();
    this.conflicts.wrote(name, this.wanted, clock.now());
    if (this.waitMs > 0) {
      log.warn(
        `another program keeps changing the caBundle of the MutatingWebhookConfiguration ${name}: correcting it less and ` +
          "less often, at least once a minute",
      );
    }
  }
}
