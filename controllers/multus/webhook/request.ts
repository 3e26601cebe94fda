import { OperatorPath } from "../../../cni/contract";
import { HttpError, type ServerRequest, type ServerResponse } from "../../../system/http/server";
import { jsonExcess } from "./json-excess";

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
export function refusal({ headers, message, status: code }: HttpError): ServerResponse {
  const reason = REASONS[code] ?? "Unknown";
  const body = JSON.stringify({ kind: "Status", apiVersion: "v1", status: "Failure", message, reason, code });
  return { status: code, headers: { ...headers, "content-type": "application/json" }, body };
}

/** The API server accepts objects of 3 MiB; the review of an update contains two, and data of the request. */
const LARGEST_BODY = 7 * 1024 * 1024;
/** Reviews larger than a pod's maximum annotations are few, and only this many of them are answered at once. */
const LARGE_BODY = 256 * 1024;
const MOST_REVIEWS = 512;
const MOST_LARGE_REVIEWS = 4;

/** The API server retries after an answer with `Retry-After`; eventually the failure policy decides. */
const tooMany = (what: string) => new HttpError(503, `too many ${what} at once: ask again`, { "retry-after": "1" });

/** Limits the number of concurrent reviews, and of large ones among them. */
export class ReviewLimit {
  private reviews = 0;
  private large = 0;

  /**
   * Runs one review, which has arrived completely: slow clients must not occupy the places of others.
   * @param bytes its size
   * @throws HttpError if too many reviews are running; what `review` throws
   */
  async run<T>(bytes: number, review: () => Promise<T>): Promise<T> {
    const large = bytes > LARGE_BODY ? 1 : 0;
    if (this.reviews >= MOST_REVIEWS) throw tooMany("reviews");
    if (this.large + large > MOST_LARGE_REVIEWS) throw tooMany("large reviews");
    this.reviews += 1;
    this.large += large;
    try {
      return await review();
    } finally {
      this.reviews -= 1;
      this.large -= large;
    }
  }
}

/** @throws HttpError if it is not a request for a review */
function checkHead({ headers, method, target }: ServerRequest): void {
  const path = target.split("?")[0];
  if (path !== OperatorPath.webhook) {
    throw new HttpError(404, `${path} does not exist: send reviews to ${OperatorPath.webhook}`);
  }
  if (method !== "POST")
    throw new HttpError(405, `${method} is not allowed: send a review with POST`, { allow: "POST" });
  const type = headers.get("content-type") ?? "";
  if (type.split(";")[0]?.trim().toLowerCase() !== "application/json") {
    throw new HttpError(415, `content-type ${JSON.stringify(type)} is not application/json`);
  }
  const encoding = headers.get("content-encoding") ?? "identity";
  if (encoding !== "identity")
    throw new HttpError(415, `content-encoding ${encoding} is not understood: send plain JSON`);
}

const decoder = new TextDecoder();

/** A review's document, not checked yet. */
interface Document {
  readonly value: unknown;
  /** Its size as text. */
  readonly bytes: number;
}

/** The body as text. Its bytes are released before the text is parsed. */
async function readText(request: ServerRequest, deadlineMs: number): Promise<string> {
  const bytes = await request.body({ deadlineMs, what: "review", most: LARGEST_BODY });
  const problem = jsonExcess(bytes);
  if (problem !== undefined) throw new HttpError(413, `the review ${problem}`);
  return decoder.decode(bytes);
}

/** The document of a request. @throws HttpError */
export async function readDocument(request: ServerRequest, deadlineMs: number): Promise<Document> {
  checkHead(request);
  const text = await readText(request, deadlineMs);
  try {
    return { value: JSON.parse(text), bytes: text.length };
  } catch (error) {
    throw new HttpError(400, `the review is not JSON: ${(error as Error).message}`);
  }
}
