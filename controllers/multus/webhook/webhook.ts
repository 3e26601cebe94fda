import type { Registry } from "prom-client";
import type { NamespaceObject } from "../../../kubernetes/types";
import { followCertificates } from "../certificates/certificates";
import type { InformerTools } from "../informer";
import { type Namespaces, namespaceOf } from "../namespaces";
import type { Settings } from "../settings";
import { answerReview } from "./admission";
import type { PodNamespace } from "./annotate";
import { WebhookServer } from "./server";
import type { TlsPair } from "./tls";

interface Tools extends InformerTools {
  readonly settings: Settings;
  readonly namespaces: Pick<Namespaces, "get" | "synced">;
  readonly registry: Registry;
}

const NAMESPACE_DEADLINE_MS = 4_000;
/** Until no client is sent here any more after this pod said that it ends. */
const DRAIN_MS = 5_000;
const NOT_FOUND = 404;

/** The mutating webhook with its certificates. */
export class Webhook {
  private readonly server: WebhookServer;
  private starting: Promise<void> | undefined;
  private failed: (error: unknown) => void = () => undefined;

  constructor(private readonly tools: Tools) {
    const { settings, log, registry } = tools;
    const namespace = (name: string) => this.namespace(name);
    this.server = new WebhookServer({
      port: settings.webhook.port,
      review: (document) => answerReview(document, { namespace, options: settings, log }),
      log,
      registry,
    });
  }

  /** Why reviews cannot be answered; undefined where they can. */
  get problem(): string | undefined {
    if (this.tools.signal.aborted) return "the webhook is about to end";
    if (!this.server.listening) return "the webhook has no certificate yet";
    return this.tools.namespaces.synced ? undefined : "the namespaces have not been listed yet";
  }

  /** Answers reviews until the signal is given, and then those that are under way. @throws where the port is taken */
  async run(): Promise<void> {
    const { clock, log, signal } = this.tools;
    const failure = new Promise<never>((_, reject) => {
      this.failed = reject;
    });
    const told = new Promise((resolve) => signal.addEventListener("abort", resolve));
    const following = followCertificates(this.tools, (pair) => this.use(pair));
    await Promise.race([following, failure, told]);
    this.server.drain();
    if (this.server.listening) await clock.sleep(DRAIN_MS);
    await this.server.close();
    log.info("the webhook has answered everything");
    await following;
  }

  private use(pair: TlsPair): void {
    if (this.starting === undefined) this.starting = this.start(pair);
    else void this.starting.then(() => this.server.use(pair));
  }

  private async start(pair: TlsPair): Promise<void> {
    try {
      await this.server.start(pair);
      this.tools.log.info("the webhook listens", { port: this.server.port });
    } catch (error) {
      this.failed(error);
    }
  }

  /** A namespace that was created a moment ago may not have been told yet. */
  private async namespace(name: string): Promise<PodNamespace> {
    const known = this.tools.namespaces.get(name);
    if (known !== undefined) return known;
    const { status, body } = await this.tools.send({
      path: `/api/v1/namespaces/${encodeURIComponent(name)}`,
      deadlineMs: NAMESPACE_DEADLINE_MS,
    });
    if (status === NOT_FOUND) return { name, annotations: {} };
    if (status !== 200) throw new Error(`namespace ${name}: ${status}: ${body.slice(0, 300)}`);
    return namespaceOf(JSON.parse(body) as NamespaceObject);
  }
}
