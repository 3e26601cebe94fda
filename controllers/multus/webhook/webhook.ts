import type { KubernetesClient } from "../../../kubernetes/client";
import type { InformerDeps } from "../../../kubernetes/informer";
import { type Rate, RateLimiter } from "../../../kubernetes/rate-limiter";
import { resources } from "../../../kubernetes/resources";
import type { Store } from "../../../kubernetes/store";
import type { NamespaceObject } from "../../../kubernetes/types";
import type { Clock } from "../../../process/clock";
import type { Registry } from "../../../process/metrics";
import { HttpError } from "../../../system/http/server";
import type { TlsPair } from "../../../system/net";
import { followFiles } from "../certificates/mounted";
import { CertificateRotator } from "../certificates/rotator";
import { ServedCertificate } from "../certificates/served";
import { type Namespace, namespaceOf } from "../namespace";
import type { Settings } from "../settings";
import { answerReview, type PodNamespace } from "./review";
import { WebhookServer } from "./server";

/** Less than the API server's timeout for a review. */
const DEADLINE_MS = 4_000;
/** Every client in the cluster can ask for namespaces that do not exist. */
const LOOKUPS: Rate = { perSecond: 5, burst: 60 };

interface LookupDeps {
  readonly clock: Pick<Clock, "now" | "sleep">;
  readonly client: Pick<KubernetesClient, "find">;
  readonly namespaces: Pick<Store<NamespaceObject, Namespace>, "get">;
}

/** Finds the namespaces of reviews. */
export class NamespaceLookup {
  private readonly limiter: RateLimiter;

  constructor(private readonly deps: LookupDeps) {
    this.limiter = new RateLimiter(LOOKUPS, deps.clock);
  }

  /**
   * The namespace as the watch has reported it; it may not have reported a new one yet, which is read from the API
   * server. Two reviews do not share a lookup: it may have begun before their namespace existed.
   * @throws HttpError if too many are read; what reading throws
   */
  async find(name: string): Promise<PodNamespace> {
    const known = this.deps.namespaces.get(name);
    if (known !== undefined) return known;
    // The API server retries after an answer with `Retry-After`; eventually the failure policy decides.
    if (this.limiter.waitMs() > 0) {
      throw new HttpError(503, "too many reviews of unknown namespaces: ask again", { "retry-after": "1" });
    }
    this.limiter.take();
    const found = await this.deps.client.find(resources.namespaces, { name }, { deadlineMs: DEADLINE_MS });
    return found === undefined ? { name, annotations: {} } : namespaceOf(found);
  }
}

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
    if (webhook.certificates === "mounted") return followFiles(webhook.certificateDir, deps);
    const options = {
      namespace: podNamespace,
      secret: webhook.certificateSecret,
      name: `${webhook.service}.${podNamespace}.svc`,
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
