import { reasonOf } from "../../../cni/errors";
import type { Log } from "../../../process/log";
import type { Registry } from "../../../process/metrics";
import { HttpError, HttpServer, type ServerRequest, type ServerResponse } from "../../../system/http/server";
import { listenTls, type TlsListener, type TlsPair } from "../../../system/net";
import { type AdmissionResponse, ReviewError, reviewOf } from "./admission-review";
import { ReviewLimit, readDocument, refusal } from "./request";

/** How long clients are waited for, in milliseconds. */
export interface ServerLimits {
  /** For the handshake of a connection. */
  readonly handshakeMs: number;
  /** For the body of a request. */
  readonly bodyMs: number;
  /** For a request on an open connection. The API server keeps connections for 90 s, and must be the one to close them. */
  readonly idleMs: number;
  /** For reviews under way when the server is closed. */
  readonly closeMs: number;
}

const LIMITS: ServerLimits = { handshakeMs: 10_000, bodyMs: 10_000, idleMs: 120_000, closeMs: 15_000 };

export interface WebhookServerOptions {
  readonly port: number;
  /** @default every address */
  readonly host?: string;
  /** Answers an AdmissionReview. @throws ReviewError if it is none */
  readonly review: (document: unknown) => Promise<AdmissionResponse>;
  readonly log: Log;
  readonly registry: Registry;
  readonly limits?: Partial<ServerLimits>;
}

/** API servers are few, and have a connection for each review under way. The oldest idle one makes room. */
const MOST_CONNECTIONS = 1024;
const HEAD_BYTES = 16 * 1024;
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];

function createMetrics(registry: Registry) {
  const requests = {
    name: "webhook_requests_total",
    help: "Requests to the webhook: patched, unchanged, refused (no review of a pod) or failed.",
    labels: ["result"] as const,
  };
  const seconds = {
    name: "webhook_seconds",
    help: "Time that answering a request took, from its head to the end of the answer.",
  };
  return { requests: registry.counter(requests), seconds: registry.histogram(seconds, SECONDS) };
}

function toHttpError(error: unknown): HttpError {
  return error instanceof HttpError ? error : new HttpError(error instanceof ReviewError ? 400 : 500, reasonOf(error));
}

/** Answers the API server's reviews over HTTPS. */
export class WebhookServer {
  private readonly limits: ServerLimits;
  private readonly http: HttpServer;
  private readonly metrics: ReturnType<typeof createMetrics>;
  private readonly limit = new ReviewLimit();
  private listener: TlsListener | undefined;

  constructor(private readonly options: WebhookServerOptions) {
    this.limits = { ...LIMITS, ...options.limits };
    this.metrics = createMetrics(options.registry);
    this.http = new HttpServer({
      connections: MOST_CONNECTIONS,
      headBytes: HEAD_BYTES,
      idleMs: this.limits.idleMs,
      answer: (request) => this.answer(request),
    });
  }

  get listening(): boolean {
    return this.listener !== undefined;
  }

  /** Takes another certificate for connections that come from now on, unless TLS refuses it. */
  use(pair: TlsPair): void {
    try {
      this.listener?.use(pair);
    } catch (error) {
      this.options.log.error(`TLS refuses the new certificate, the one before it stays: ${reasonOf(error)}`);
    }
  }

  /** Listens. @throws if the port is taken */
  async start(pair: TlsPair): Promise<void> {
    const { handshakeMs } = this.limits;
    this.listener = await listenTls(this.options, pair, { handshakeMs }, this.http.take);
  }

  /** Where it listens, when port 0 was asked for. */
  get port(): number {
    return this.listener?.port ?? this.options.port;
  }

  /** Has clients leave: each connection is closed after its next answer. */
  drain(): void {
    this.http.drain();
  }

  /** Takes no more connections, answers what was asked, and ends. */
  async close(): Promise<void> {
    this.listener?.close();
    this.listener = undefined;
    await this.http.close(this.limits.closeMs);
  }

  private async answer(request: ServerRequest): Promise<ServerResponse> {
    const start = performance.now();
    try {
      const answer = await this.limit.run(async (received) => {
        const document = await readDocument(request, { deadlineMs: this.limits.bodyMs, received });
        return this.options.review(document);
      });
      this.metrics.requests.inc({ result: answer.patch === undefined ? "unchanged" : "patched" });
      return { status: 200, headers: { "content-type": "application/json" }, body: JSON.stringify(reviewOf(answer)) };
    } catch (error) {
      return this.refuse(toHttpError(error));
    } finally {
      this.metrics.seconds.observe((performance.now() - start) / 1_000);
    }
  }

  private refuse(error: HttpError): ServerResponse {
    const failed = error.status >= 500;
    this.metrics.requests.inc({ result: failed ? "failed" : "refused" });
    this.options.log[failed || error.status === 400 ? "warn" : "debug"](
      `review answered ${error.status}: ${error.message}`,
    );
    return refusal(error);
  }
}
