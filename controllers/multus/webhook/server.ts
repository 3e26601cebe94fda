import { OperatorPath } from "../../../cni/contract";
import { quoted, reasonOf, shortened } from "../../../cni/errors";
import type { Log } from "../../../process/log";
import type { Registry } from "../../../process/metrics";
import { HttpError, HttpServer, type ServerRequest, type ServerResponse } from "../../../system/http/server";
import { listenTls, type TlsListener, type TlsPair } from "../../../system/net";
import { type AdmissionResponse, parseReview, type Review, reviewOf } from "./review";

/** Timeouts for clients, in milliseconds. */
export interface ServerLimits {
  /** Body of a request. */
  readonly bodyMs: number;
  /** Next request of a connection. The API server keeps connections for 90 s, and must be the one to close them. */
  readonly idleMs: number;
  /** Running reviews when the server closes. */
  readonly closeMs: number;
}

const LIMITS: ServerLimits = { bodyMs: 10_000, idleMs: 120_000, closeMs: 15_000 };

interface WebhookServerOptions {
  readonly port: number;
  /** @default every address */
  readonly host?: string;
  /** Answers an AdmissionReview. */
  readonly review: (review: Review) => Promise<AdmissionResponse>;
  readonly log: Log;
  readonly registry: Registry;
  readonly limits?: Partial<ServerLimits>;
}

/**
 * An API server uses a connection for each running review, and runs some 200 at a time by default. The connection that
 * has waited longest is closed for a new one.
 */
const MOST_CONNECTIONS = 512;
/** Maximum bytes of reviews in transit: of two of the largest, or hundreds of the usual ones. */
const BODY_BYTES = 16 * 1024 * 1024;
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

const REASONS: Readonly<Record<number, string>> = {
  400: "BadRequest",
  404: "NotFound",
  405: "MethodNotAllowed",
  408: "Timeout",
  413: "RequestEntityTooLarge",
  415: "UnsupportedMediaType",
  500: "InternalError",
  503: "ServiceUnavailable",
};

/** An error in the form in which the API server passes the message on to the client that sent the pod. */
function refusal({ headers, message, status: code }: HttpError): ServerResponse {
  const reason = REASONS[code] ?? "Unknown";
  const body = JSON.stringify({ kind: "Status", apiVersion: "v1", status: "Failure", message, reason, code });
  return { status: code, headers: { ...headers, "content-type": "application/json" }, body };
}

/** The API server accepts objects of 3 MiB; the review of an update contains two, and data of the request. */
const LARGEST_BODY = 7 * 1024 * 1024;

/** @throws HttpError if it is not a request for a review */
function checkHead({ headers, method, target }: ServerRequest): void {
  const [path = ""] = target.split("?");
  if (path !== OperatorPath.webhook) {
    throw new HttpError(404, `${shortened(path)} does not exist: send reviews to ${OperatorPath.webhook}`);
  }
  if (method !== "POST")
    throw new HttpError(405, `${shortened(method)} is not allowed: send a review with POST`, { allow: "POST" });
  const type = headers.get("content-type") ?? "";
  if (type.split(";")[0]?.trim().toLowerCase() !== "application/json") {
    throw new HttpError(415, `content-type ${quoted(type)} is not application/json`);
  }
  const encoding = headers.get("content-encoding") ?? "identity";
  if (encoding !== "identity")
    throw new HttpError(415, `content-encoding ${quoted(encoding)} is not understood: send plain JSON`);
}

const QUOTE = 34;
const BACKSLASH = 92;
/**
 * A part is a value or a key. A part of seven bytes takes up to 200 bytes when parsed; a large pod has some thousands.
 */
const MOST_PARTS = 100_000;
/** Real pods have about ten levels. */
const MOST_LEVELS = 100;

/** The index of the quote that ends a string, or the end of the bytes. */
function endOfString(bytes: Uint8Array, start: number): number {
  for (let from = start; ; ) {
    const quote = bytes.indexOf(QUOTE, from);
    if (quote < 0) return bytes.length;
    let escapes = quote;
    while (escapes > start && bytes[escapes - 1] === BACKSLASH) escapes -= 1;
    if ((quote - escapes) % 2 === 0) return quote;
    from = quote + 1;
  }
}

/**
 * Why a JSON text would need too much memory when parsed; undefined if it would not, or if it is not JSON. Parsing a
 * text of `[` needs eighty times its size. Strings are skipped quickly.
 */
export function jsonExcess(bytes: Uint8Array): string | undefined {
  let parts = 0;
  let levels = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    switch (bytes[at]) {
      case QUOTE:
        at = endOfString(bytes, at + 1);
        break;
      case 0x5b: // [
      case 0x7b: // {
        parts += 1;
        levels += 1;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        levels -= 1;
        break;
      case 0x2c: // ,
      case 0x3a: // :
        parts += 1;
        break;
    }
    if (levels > MOST_LEVELS) return `is nested deeper than ${MOST_LEVELS} levels`;
    if (parts > MOST_PARTS) return `has more than ${MOST_PARTS} keys and values`;
  }
  return undefined;
}

const decoder = new TextDecoder();

/** The body as text. Its bytes are released before the text is parsed. */
async function readText(request: ServerRequest, deadlineMs: number): Promise<string> {
  const bytes = await request.body({ deadlineMs, what: "review", most: LARGEST_BODY });
  const problem = jsonExcess(bytes);
  if (problem !== undefined) throw new HttpError(413, `the review ${problem}`);
  return decoder.decode(bytes);
}

/** @throws HttpError */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new HttpError(400, `the review is not JSON: ${(error as Error).message}`);
  }
}

/**
 * The review of a request. A document takes many times the memory of its text, so there is never more than one:
 * what answering needs is taken from it at once. @throws HttpError
 */
async function readReview(request: ServerRequest, deadlineMs: number): Promise<Review> {
  checkHead(request);
  const text = await readText(request, deadlineMs);
  return parseReview(parseJson(text));
}

/** Answers the API server's reviews over HTTPS. */
export class WebhookServer {
  private readonly limits: ServerLimits;
  private readonly http: HttpServer;
  private readonly metrics: ReturnType<typeof createMetrics>;
  private listener: TlsListener | undefined;

  constructor(private readonly options: WebhookServerOptions) {
    this.limits = { ...LIMITS, ...options.limits };
    this.metrics = createMetrics(options.registry);
    this.http = new HttpServer({
      connections: MOST_CONNECTIONS,
      bodyBytes: BODY_BYTES,
      headBytes: HEAD_BYTES,
      idleMs: this.limits.idleMs,
      answer: (request) => this.answer(request),
    });
  }

  get listening(): boolean {
    return this.listener !== undefined;
  }

  /** Uses another certificate for new connections, unless TLS refuses it. */
  use(pair: TlsPair): void {
    try {
      this.listener?.use(pair);
    } catch (error) {
      this.options.log.error(`TLS refuses the new certificate, the one before it stays: ${reasonOf(error)}`);
    }
  }

  /** Listens. @throws if the port is in use */
  async start(pair: TlsPair): Promise<void> {
    this.listener = await listenTls(this.options, pair, this.http.take);
  }

  /** The actual port if port 0 was requested. */
  get port(): number {
    return this.listener?.port ?? this.options.port;
  }

  /** Drains connections: each is closed after its next answer. */
  drain(): void {
    this.http.drain();
  }

  /** Accepts no more connections, answers current requests, and ends. */
  async close(): Promise<void> {
    this.listener?.close();
    this.listener = undefined;
    await this.http.close(this.limits.closeMs);
  }

  private async answer(request: ServerRequest): Promise<ServerResponse> {
    const start = performance.now();
    try {
      const answer = await this.options.review(await readReview(request, this.limits.bodyMs));
      this.metrics.requests.inc({ result: answer.patch === undefined ? "unchanged" : "patched" });
      return { status: 200, headers: { "content-type": "application/json" }, body: JSON.stringify(reviewOf(answer)) };
    } catch (error) {
      return this.refuse(error instanceof HttpError ? error : new HttpError(500, reasonOf(error)));
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
