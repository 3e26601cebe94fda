import type { ApiServer } from "../../kubernetes/client";

/** One encrypted connection to an API server that proved who it is. */
export interface Wire {
  send(text: string): void;
}

/** What happens on a connection, in this order, perhaps before it could be given up; after its end nothing counts. */
export interface WireEvents {
  /** The handshake has begun: there is time until the server answers it. */
  begun(): void;
  ready(wire: Wire): void;
  received(bytes: Uint8Array): void;
  /** It could not be made, or what is there is no API server to trust. */
  refused(reason: string): void;
  /** It was made, and broke for a reason, or the server closed it. */
  ended(reason?: string): void;
}

/** Opens a connection; the returned function gives it up. */
export type Connect = (server: ApiServer, events: WireEvents) => () => void;
