import { type ApiServer, httpsTransport, type Transport } from "../kubernetes/client";

/** Sends by a connection that is kept, until the token or the certificates change. */
export function renewingTransport(server: () => ApiServer): Transport & { close(): void } {
  let known = "";
  let current: ReturnType<typeof httpsTransport> | undefined;
  const send: Transport = async (call) => {
    const now = server();
    const identity = JSON.stringify(now);
    if (current === undefined || identity !== known) {
      current?.close();
      current = httpsTransport(now);
      known = identity;
    }
    return current(call);
  };
  return Object.assign(send, { close: () => current?.close() });
}
