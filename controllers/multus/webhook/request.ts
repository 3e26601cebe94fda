import type { IncomingMessage } from "node:http";
import { OperatorPath } from "../../../cni/contract";

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

/** A request that gets an error for an answer. */
export class HttpError extends Error {
  override readonly name = "HttpError";
  constructor(
    readonly status: number,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }

  /** The form in which the API server passes the message on to whoever sent the pod. */
  body(): string {
    const reason = REASONS[this.status] ?? "Unknown";
    const { status: code, message } = this;
    return JSON.stringify({ kind: "Status", apiVersion: "v1", status: "Failure", message, reason, code });
  }
}

/** The API server takes objects of 3 MiB; the review of an update holds two, and something about the request. */
const LARGEST_BODY = 7 * 1024 * 1024;
/** Larger reviews are few, and only so many of them are read at once: a pod's annotations are no larger. */
const LARGE_BODY = 256 * 1024;
const MOST_REVIEWS = 512;
const MOST_LARGE_REVIEWS = 4;

/** The API server retries an answer with `Retry-After`; in the end the failure policy decides. */
const tooMany = (what: string) => new HttpError(503, `too many ${what} at once: ask again`, { "retry-after": "1" });

/** Bounds the reviews under way: their number, and that of the large ones among them. */
export class ReviewLimit {
  private reviews = 0;
  private large = 0;

  /**
   * Runs one review. It calls `received` with its size so far, which throws if too many others are large already.
   * @throws HttpError where too many reviews are under way; what `review` throws
   */
  async run<T>(review: (received: (bytes: number) => void) => Promise<T>): Promise<T> {
    if (this.reviews >= MOST_REVIEWS) throw tooMany("reviews");
    let isLarge = false;
    let ended = false;
    const received = (bytes: number) => {
      // A body that was too slow may still arrive for a moment, and nobody would give its place back.
      if (ended) throw new Error("the review has ended");
      if (isLarge || bytes <= LARGE_BODY) return;
      if (this.large >= MOST_LARGE_REVIEWS) throw tooMany("large reviews");
      isLarge = true;
      this.large += 1;
    };
    this.reviews += 1;
    try {
      return await review(received);
    } finally {
      ended = true;
      this.reviews -= 1;
      if (isLarge) this.large -= 1;
    }
  }
}

/** How a body is read. */
interface Reading {
  readonly deadlineMs: number;
  /** Told how many bytes there are so far. @throws where they are too many */
  readonly received: (bytes: number) => void;
}

/** @throws HttpError where it is not the kind of request that is answered here */
function checkHead({ headers, method, url = "/" }: IncomingMessage): void {
  const path = url.split("?")[0];
  if (path !== OperatorPath.webhook) {
    throw new HttpError(404, `${path} does not exist: send reviews to ${OperatorPath.webhook}`);
  }
  if (method !== "POST")
    throw new HttpError(405, `${method} is not allowed: send a review with POST`, { allow: "POST" });
  const type = headers["content-type"] ?? "";
  if (type.split(";")[0]?.trim().toLowerCase() !== "application/json") {
    throw new HttpError(415, `content-type ${JSON.stringify(type)} is not application/json`);
  }
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding !== "identity")
    throw new HttpError(415, `content-encoding ${encoding} is not understood: send plain JSON`);
}

const tooLarge = () => new HttpError(413, `the review is larger than ${LARGEST_BODY} bytes`);

/** @throws HttpError where it is too large, one too many, too slow, or broken off */
function readBody(request: IncomingMessage, { deadlineMs, received }: Reading): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (Number(request.headers["content-length"] ?? 0) > LARGEST_BODY) return reject(tooLarge());
    const chunks: Buffer[] = [];
    let size = 0;
    const timer = setTimeout(
      () => reject(new HttpError(408, `the review did not arrive within ${deadlineMs} ms`)),
      deadlineMs,
    );
    const take = (chunk: Buffer) => {
      size += chunk.length;
      try {
        if (size > LARGEST_BODY) throw tooLarge();
        received(size);
        chunks.push(chunk);
      } catch (error) {
        request.off("data", take);
        chunks.length = 0;
        reject(error);
      }
    };
    request.on("data", take);
    request.on("end", () => resolve(Buffer.concat(chunks)));
    request.on("close", () => {
      clearTimeout(timer);
      reject(new HttpError(400, "the review broke off"));
    });
    request.on("error", () => undefined);
  });
}

/** The document that a request carries. @throws HttpError */
export async function readDocument(request: IncomingMessage, reading: Reading): Promise<unknown> {
  checkHead(request);
  const body = await readBody(request, reading);
  try {
    return JSON.parse(body.toString("utf8"));
  } catch (error) {
    throw new HttpError(400, `the review is not JSON: ${(error as Error).message}`);
  }
}
