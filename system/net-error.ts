/** The failed step of a connection. */
export type NetFailure = "resolve" | "connect" | "ca" | "handshake" | "verify" | "closed";

/** The connection failed or ended. */
export class NetError extends Error {
  override readonly name = "NetError";
  /** @param code such as `ECONNREFUSED`, if any */
  constructor(
    message: string,
    readonly kind: NetFailure,
    readonly code?: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
