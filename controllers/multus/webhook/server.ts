import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer, type Server as TlsServer } from "node:tls";
import { reasonOf } from "../../../cni/errors";
import type { Log } from "../../../process/log";
import type { Registry } from "../../../process/metrics";
import type { TlsPair } from "../certificates/certificate";
import { type AdmissionResponse, ReviewError, reviewOf } from "./admission-review";
import { Connections } from "./connections";
import { HttpError, ReviewLimit, readDocument } from "./request";

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
  /** Answers an AdmissionReview. @throws ReviewError where it is none */
  readonly review: (document: unknown) => Promise<AdmissionResponse>;
  readonly log: Log;
  readonly registry: Registry;
  readonly limits?: Partial<ServerLimits>;
}

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

/**
 * Answers the API server's reviews over HTTPS. A server of `node:tls` hands its connections to one of `node:http`,
 * since the runtime's own HTTPS server cannot change its certificate.
 */
export class WebhookServer {
  private readonly limits: ServerLimits;
  private readonly http: Server;
  private readonly metrics: ReturnType<typeof createMetrics>;
  private readonly connections: Connections;
  private readonly limit = new ReviewLimit();
  private tls: TlsServer | undefined;

  constructor(private readonly options: WebhookServerOptions) {
    this.limits = { ...LIMITS, ...options.limits };
    this.connections = new Connections(this.limits.idleMs);
    this.metrics = createMetrics(options.registry);
    this.http = createHttpServer((request, response) => void this.handle(request, response));
  }

  get listening(): boolean {
    return this.tls?.listening === true;
  }

  /** Takes another certificate for connections that come from now on, unless TLS refuses it. */
  use({ cert, key }: TlsPair): void {
    try {
      this.tls?.setSecureContext({ cert, key, minVersion: "TLSv1.2" });
    } catch (error) {
      this.options.log.error(`TLS refuses the new certificate, the one before it stays: ${reasonOf(error)}`);
    }
  }

  /** Listens. @throws where the port is taken */
  async start({ cert, key }: TlsPair): Promise<void> {
    const handshakeTimeout = this.limits.handshakeMs;
    const tls = createTlsServer({ cert, key, minVersion: "TLSv1.2", ALPNProtocols: ["http/1.1"], handshakeTimeout });
    tls.on("secureConnection", (socket) => {
      this.connections.add(socket);
      this.http.emit("connection", socket);
    });
    tls.on("tlsClientError", (error, socket) => {
      this.options.log.debug(`a connection to the webhook failed: ${error.message}`);
      socket.destroy();
    });
    await new Promise<void>((resolve, reject) => {
      tls.once("error", reject);
      tls.listen(this.options.port, this.options.host, resolve);
    });
    this.tls = tls;
  }

  /** Where it listens, when port 0 was asked for. */
  get port(): number {
    const address = this.tls?.address();
    return typeof address === "object" && address !== null ? address.port : this.options.port;
  }

  /** Has clients leave: each connection is closed after its next answer. */
  drain(): void {
    this.connections.drain();
  }

  /** Takes no more connections, answers what was asked, and ends. */
  async close(): Promise<void> {
    const { tls } = this;
    if (tls === undefined) return;
    const closed = new Promise<void>((resolve) => tls.close(() => resolve()));
    this.connections.end(this.limits.closeMs);
    await closed;
  }

  private async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const start = performance.now();
    this.connections.begin(request, response);
    response.on("error", () => undefined);
    try {
      const answer = await this.limit.run(async (received) => {
        const document = await readDocument(request, { deadlineMs: this.limits.bodyMs, received });
        return this.options.review(document);
      });
      this.metrics.requests.inc({ result: answer.patch === undefined ? "unchanged" : "patched" });
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(reviewOf(answer)));
    } catch (error) {
      this.refuse(request, response, toHttpError(error));
    }
    this.metrics.seconds.observe((performance.now() - start) / 1_000);
  }

  private refuse(request: IncomingMessage, response: ServerResponse, error: HttpError): void {
    const failed = error.status >= 500;
    this.metrics.requests.inc({ result: failed ? "failed" : "refused" });
    this.options.log[failed || error.status === 400 ? "warn" : "debug"](
      `review answered ${error.status}: ${error.message}`,
    );
    // What is left of the body is not read.
    if (!request.complete) response.setHeader("connection", "close");
    response.writeHead(error.status, { "content-type": "application/json", ...error.headers }).end(error.body());
  }
}
