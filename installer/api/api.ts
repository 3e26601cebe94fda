import { type ApiRequest, type ApiServer, ApiUnreachable, authority, type Transport } from "../../kubernetes/client";

/** What the runtime's own client takes besides, see https://bun.com/docs/api/fetch#tls. */
interface Init extends RequestInit {
  readonly tls: {
    readonly ca?: string | undefined;
    readonly rejectUnauthorized: boolean;
  };
}

function reasonOf(error: unknown, deadlineMs: number): string {
  const { name, code, message } = error as { name?: string; code?: unknown; message?: string };
  if (name === "TimeoutError") return `no answer within ${deadlineMs} ms`;
  return typeof code === "string" ? code : (message ?? String(error));
}

function initOf(server: ApiServer, call: ApiRequest): Init {
  const { method = "GET", body, contentType = "application/json", deadlineMs } = call;
  return {
    method,
    headers: {
      accept: "application/json",
      ...(server.token === undefined ? {} : { authorization: `Bearer ${server.token}` }),
      ...(body === undefined ? {} : { "content-type": contentType }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    redirect: "manual",
    keepalive: false,
    signal: AbortSignal.timeout(deadlineMs),
    tls: { ca: server.ca, rejectUnauthorized: server.insecure !== true },
  };
}

/**
 * A transport by the runtime's own `fetch`: the one that others use, by `node:https`, costs each node 5 MB more. It asks
 * now and then, so that no connection is worth keeping.
 */
export function fetchTransport(server: ApiServer): Transport & { close(): void } {
  const send: Transport = async (call) => {
    try {
      const response = await fetch(`https://${authority(server)}${call.path}`, initOf(server, call));
      return { status: response.status, body: await response.text() };
    } catch (error) {
      throw new ApiUnreachable(authority(server), reasonOf(error, call.deadlineMs), { cause: error });
    }
  };
  return Object.assign(send, { close: () => undefined });
}
