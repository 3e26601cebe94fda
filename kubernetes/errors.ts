import type { ApiResponse } from "./api-server";

/** The Status object that an API server answers instead of the requested object. */
interface Status {
  readonly message?: unknown;
  readonly reason?: unknown;
  readonly details?: {
    readonly causes?: readonly { readonly reason?: string }[];
    readonly retryAfterSeconds?: number;
  };
}

function statusObject(body: string): Status {
  try {
    return (JSON.parse(body) as Status | null) ?? {};
  } catch {
    return {};
  }
}

/** Maximum length of an answer quoted in a message, in characters. */
const LONGEST_ANSWER = 300;

/** The API server refused a request. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** HTTP status. */
  readonly status: number;
  /** Such as `AlreadyExists`; empty if absent. */
  readonly reason: string;
  /** Reasons of the causes, such as `NamespaceTerminating`. */
  readonly causes: readonly string[];
  /** Seconds after which to retry; undefined if absent. */
  readonly retryAfter: number | undefined;

  /** @param what the request, such as `get pods shop/cart` */
  constructor(what: string, response: ApiResponse) {
    const { message, reason, details } = statusObject(response.body);
    const said = typeof message === "string" ? message : response.body;
    super(`${what}: ${response.status}: ${said.trim().slice(0, LONGEST_ANSWER)}`);
    this.status = response.status;
    this.reason = typeof reason === "string" ? reason : "";
    this.causes = (details?.causes ?? []).flatMap((cause) => cause.reason ?? []);
    this.retryAfter = secondsOf(response.retryAfter) ?? details?.retryAfterSeconds;
  }
}

/** The header may also contain a date, which API servers do not send. */
function secondsOf(header: string | undefined): number | undefined {
  return header !== undefined && /^\d+$/.test(header) ? Number(header) : undefined;
}

/** HTTP status of an {@link ApiError}; undefined for every other error. */
export function statusOf(error: unknown): number | undefined {
  return error instanceof ApiError ? error.status : undefined;
}

const has =
  (status: number) =>
  (error: unknown): error is ApiError =>
    statusOf(error) === status;

/**
 * Whether the same request may succeed later: the kubelet just replaced its token (401), or the server is overloaded or
 * starting.
 */
export const isTemporary = (status: number): boolean => status === 401 || status === 429 || status >= 500;

export const isForbidden = has(403);
/** The object or its resource does not exist. */
export const isNotFound = has(404);
/** The object to create already exists. */
export const isAlreadyExists = (error: unknown): error is ApiError =>
  has(409)(error) && error.reason === "AlreadyExists";
/** The object differs from the request's precondition: another version, another UID, another owner of a field. */
export const isConflict = (error: unknown): error is ApiError => has(409)(error) && error.reason !== "AlreadyExists";
/** The server has not reached the resource version; a proxy's 504 has no cause. */
export const isTooLargeVersion = (error: unknown): error is ApiError =>
  has(504)(error) && error.causes.includes("ResourceVersionTooLarge");
export const isTooManyRequests = has(429);
