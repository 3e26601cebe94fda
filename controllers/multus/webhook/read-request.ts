import type { IncomingMessage } from "node:http";
import { HttpError } from "./http-error";
import { isDeeperThan } from "./json-depth";
import type { Share } from "./room";

/** Where the API server sends reviews. */
export const REVIEW_PATH = "/annotate-multus-v1-pod";

/** The API server takes objects of 3 MiB; the review of an update holds two, and something about the request. */
const LARGEST_BODY = 7 * 1024 * 1024;
/** No pod nests as deep; millions of empty lists, one in the other, take gigabytes when they are parsed. */
const DEEPEST = 1_000;

/** How a body is read. */
interface Reading {
  readonly deadlineMs: number;
  /** Holds what was read. */
  readonly share: Share;
}

/** @throws HttpError where it is not the kind of request that is answered here */
function checkHead({ headers, method, url = "/" }: IncomingMessage): void {
  const path = url.split("?")[0];
  if (path !== REVIEW_PATH) throw new HttpError(404, `${path} is not here: reviews are answered at ${REVIEW_PATH}`);
  if (method !== "POST")
    throw new HttpError(405, `${method} is not answered: send a review with POST`, { allow: "POST" });
  const type = headers["content-type"] ?? "";
  if (type.split(";")[0]?.trim().toLowerCase() !== "application/json") {
    throw new HttpError(415, `content-type ${JSON.stringify(type)} is not application/json`);
  }
  const encoding = headers["content-encoding"] ?? "identity";
  if (encoding !== "identity")
    throw new HttpError(415, `content-encoding ${encoding} is not understood: send plain JSON`);
}

/** The API server asks again where it is told when; in the end the failure policy decides. */
const crowded = () => new HttpError(503, "too many large reviews at once: ask again", { "retry-after": "1" });
const tooLarge = () => new HttpError(413, `the review is larger than ${LARGEST_BODY} bytes`);

/** @throws HttpError where it is too large, does not fit beside others, is too slow, or broken off */
function readBody(request: IncomingMessage, { deadlineMs, share }: Reading): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (Number(request.headers["content-length"] ?? 0) > LARGEST_BODY) return reject(tooLarge());
    const chunks: Buffer[] = [];
    let size = 0;
    const timer = setTimeout(
      () => reject(new HttpError(408, `the review did not come within ${deadlineMs} ms`)),
      deadlineMs,
    );
    request.on("data", (chunk: Buffer) => {
      size += chunk.length;
      if (size > LARGEST_BODY) reject(tooLarge());
      else if (share.grow(chunk.length)) chunks.push(chunk);
      else reject(crowded());
    });
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
  if (isDeeperThan(body, DEEPEST)) throw new HttpError(400, `the review nests more than ${DEEPEST} deep`);
  try {
    return JSON.parse(body.toString("utf8"));
  } catch (error) {
    throw new HttpError(400, `the review is not JSON: ${(error as Error).message}`);
  }
}
