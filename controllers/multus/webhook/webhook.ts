import type { KubernetesClient } from "../../../kubernetes/client";
import type { InformerDeps } from "../../../kubernetes/informer";
import type { Store } from "../../../kubernetes/store";
import type { NamespaceObject } from "../../../kubernetes/types";
import type { Registry } from "../../../process/metrics";
import type { TlsPair } from "../certificates/certificate";
import { MountedCertificate } from "../certificates/mounted";
import { CertificateRotator } from "../certificates/rotator";
import { ServedCertificate } from "../certificates/served";
import type { Namespace } from "../namespace";
import type { Settings } from "../settings";
import { NamespaceLookup } from "./namespace-lookup";
import { answerReview } from "./review";
import { WebhookServer } from "./server";

interface WebhookDeps extends InformerDeps {
  readonly client: KubernetesClient;
  readonly settings: Settings;
  readonly namespaces: Pick<Store<NamespaceObject, Namespace>, "get" | "synced">;
  readonly registry: Registry;
}

/** Time until clients no longer reach this pod after it reports that it is stopping. */
const DRAIN_MS = 5_000;

/** The mutating webhook with its certificates. */
export class Webhook {
  private readonly server: WebhookServer;
  private starting: Promise<void> | undefined;
  private failed: (error: unknown) => void = () => undefined;

  constructor(private readonly deps: WebhookDeps) {
    const { settings, log, registry } = deps;
    const lookup = new NamespaceLookup(deps);
    const namespace = (name: string) => lookup.find(name);
    this.server = new WebhookServer({
      port: settings.webhook.port,
      review: (review) => answerReview(review, { namespace, options: settings, log }),
      log,
      registry,
    });
  }

  /** Why reviews cannot be answered; undefined if they can. */
  get problem(): string | undefined {
    if (this.deps.signal.aborted) return "the webhook is shutting down";
    if (!this.server.listening) return "the webhook has no certificate yet";
    return this.deps.namespaces.synced ? undefined : "the namespaces have not been listed yet";
  }

  /** Answers reviews until the signal is given, and then finishes running ones. @throws if the port is in use */
  async run(): Promise<void> {
    const { clock, log, signal } = this.deps;
    const failure = new Promise<never>((_, reject) => {
      this.failed = reject;
    });
    const stopped = new Promise((resolve) => signal.addEventListener("abort", resolve));
    const following = this.followCertificate();
    await Promise.race([following, failure, stopped]);
    this.server.drain();
    if (this.server.listening) await clock.sleep(DRAIN_MS);
    await this.server.close();
    log.info("the webhook has answered everything");
    await following;
  }

  private followCertificate(): Promise<void> {
    const { log, registry, settings } = this.deps;
    const { webhook, podNamespace } = settings;
    const served = new ServedCertificate({ log, registry, use: (pair: TlsPair) => this.use(pair) });
    const deps = { ...this.deps, served };
    if (webhook.certificates === "mounted") {
      return new MountedCertificate(webhook.certificateDir, deps).run();
    }
    const options = {
      namespace: podNamespace,
      secret: webhook.certificateSecret,
      service: webhook.service,
      configuration: webhook.configuration,
      validMs: webhook.certificateValidityMs,
    };
    return new CertificateRotator(options, deps).run();
  }

  private use(pair: TlsPair): void {
    if (this.starting === undefined) this.starting = this.start(pair);
    else void this.starting.then(() => this.server.use(pair));
  }

  private async start(pair: TlsPair): Promise<void> {
    try {
      await this.server.start(pair);
      this.deps.log.info("the webhook listens", { port: this.server.port });
    } catch (error) {
      this.failed(error);
    }
  }
}
