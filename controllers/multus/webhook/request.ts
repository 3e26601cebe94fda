import { OperatorPath } from "../../../cni/contract";
import { quoted, shortened } from "../../../cni/errors";
import { HttpError, type ServerRequest, type ServerResponse } from "../../../system/http/server";
import { parseReview, type Review } from "./admission-review";
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
 * what answering needs is taken from it at once. @throws HttpError, ReviewError
 */
export async function readReview(request: ServerRequest, deadlineMs: number): Promise<Review> {
  checkHead(request);
  const text = await readText(request, deadlineMs);
  return parseReview(parseJson(text));
}
