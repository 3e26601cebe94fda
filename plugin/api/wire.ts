import type { ApiServer } from "../../kubernetes/client";

/** One encrypted connection to an API server that proved who it is. */
export interface Wire {
  send(text: string): void;
}

/** What happens on a connection, in this order; after `ended` nothing more comes. */
export interface WireEvents {
  /** The handshake has begun: there is time until the server answers it. */
  begun(): void;
  ready(wire: Wire): void;
  received(bytes: Uint8Array): void;
  /** With a reason: it could not be made, was not trusted, or broke. Without: the server closed it. */
  ended(reason?: string): void;
}

/** Opens a connection; the returned function gives it up. */
export type Connect = (server: ApiServer, events: WireEvents) => () => void;
