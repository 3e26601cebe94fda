import { type ApiServer, httpsTransport, type Transport } from "../kubernetes/client";

interface Connection {
  readonly identity: string;
  readonly transport: ReturnType<typeof httpsTransport>;
  /** Requests under way. */
  open: number;
}

/** Sends by a connection that is kept, until the token or the certificates change; what is under way then is answered. */
export function renewingTransport(server: () => ApiServer): Transport & { close(): void } {
  let current: Connection | undefined;
  const closeUnused = (connection: Connection | undefined) => {
    if (connection !== current && connection?.open === 0) connection.transport.close();
  };
  const connection = (): Connection => {
    const now = server();
    const identity = JSON.stringify(now);
    if (current?.identity === identity) return current;
    const before = current;
    current = { identity, transport: httpsTransport(now), open: 0 };
    closeUnused(before);
    return current;
  };
  const send: Transport = async (call) => {
    const used = connection();
    used.open += 1;
    try {
      return await used.transport(call);
    } finally {
      used.open -= 1;
      closeUnused(used);
    }
  };
  return Object.assign(send, { close: () => current?.transport.close() });
}
