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
