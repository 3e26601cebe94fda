import { Agent, type RequestOptions, request } from "node:https";
import { reasonOf } from "../cni/errors";
import { type ApiResponse, type ApiServer, ApiUnreachable, authority, bearer } from "./api-server";

export interface ApiRequest {
  /** @default "GET" */
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path and query, beginning with `/`. */
  readonly path: string;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** @default "application/json" */
  readonly contentType?: string;
  /** Milliseconds for connecting, sending and receiving together. */
  readonly deadlineMs: number;
}

/** One request, one response; rejects with {@link ApiUnreachable} where there is no response. */
export type Transport = (request: ApiRequest) => Promise<ApiResponse>;

/** A transport that keeps connections until it is closed. */
export type ClosingTransport = Transport & { close(): void };

/** No answer came within the deadline; the request may have been carried out. */
export class ApiTimeout extends ApiUnreachable {
  override readonly name = "ApiTimeout";
  constructor(server: string, deadlineMs: number, options?: ErrorOptions) {
    super(server, `no answer within ${deadlineMs} ms`, options);
  }
}

/** What `node:https` needs for a call. */
export function requestOptions(
  server: ApiServer,
  call: Omit<ApiRequest, "deadlineMs">,
  payload: string | undefined,
): RequestOptions {
  const headers: Record<string, string | number> = { accept: "application/json" };
  const authorization = bearer(server);
  if (authorization !== undefined) headers["authorization"] = authorization;
  if (payload !== undefined) {
    headers["content-type"] = call.contentType ?? "application/json";
    headers["content-length"] = Buffer.byteLength(payload);
  }
  return {
    host: server.host,
    port: server.port,
    path: call.path,
    method: call.method ?? "GET",
    headers,
    rejectUnauthorized: server.insecure !== true,
    ...(server.ca === undefined ? {} : { ca: server.ca }),
    ...(server.serverName === undefined ? {} : { servername: server.serverName }),
    ...(server.certificate ?? {}),
  };
}

const responseOf = (status: number, body: string, retryAfter: string | undefined | null): ApiResponse => ({
  status,
  body,
  ...(retryAfter ? { retryAfter } : {}),
});

function sendOverHttps(server: ApiServer, call: ApiRequest, agent: Agent): Promise<ApiResponse> {
  return new Promise((resolve, reject) => {
    const payload = call.body === undefined ? undefined : JSON.stringify(call.body);
    const fail = (error: Error) => {
      clearTimeout(timer);
      reject(new ApiUnreachable(authority(server), error.message, { cause: error }));
    };
    const outgoing = request({ ...requestOptions(server, call, payload), agent }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("error", fail);
      response.on("end", () => {
        clearTimeout(timer);
        const body = Buffer.concat(chunks).toString("utf8");
        resolve(responseOf(response.statusCode ?? 0, body, response.headers["retry-after"]));
      });
    });
    const timer = setTimeout(() => {
      reject(new ApiTimeout(authority(server), call.deadlineMs));
      outgoing.destroy();
    }, call.deadlineMs);
    outgoing.on("error", fail);
    outgoing.end(payload);
  });
}

/** Connections to one API server under one identity. */
interface Connections {
  readonly identity: string;
  readonly server: ApiServer;
  readonly agent: Agent;
  /** Requests under way. */
  open: number;
}

/**
 * A transport over HTTPS that keeps connections open between requests.
 * @param server is asked before each request where it is a function: new connections are made when the token or the
 * certificates have changed. Requests under way are still answered over the old ones.
 */
export function httpsTransport(server: ApiServer | (() => ApiServer)): ClosingTransport {
  let current: Connections | undefined;
  const closeUnused = (connections: Connections | undefined) => {
    if (connections !== current && connections?.open === 0) connections.agent.destroy();
  };
  const connect = (): Connections => {
    const now = typeof server === "function" ? server() : server;
    const identity = JSON.stringify(now);
    if (current?.identity === identity) return current;
    const before = current;
    current = { identity, server: now, agent: new Agent({ keepAlive: true, maxSockets: 4 }), open: 0 };
    closeUnused(before);
    return current;
  };
  const send: Transport = async (call) => {
    const used = connect();
    used.open += 1;
    try {
      return await sendOverHttps(used.server, call, used.agent);
    } finally {
      used.open -= 1;
      closeUnused(used);
    }
  };
  return Object.assign(send, { close: () => current?.agent.destroy() });
}

/** What the `fetch` of the image's runtime takes besides, see https://bun.com/docs/api/fetch#tls. */
interface FetchInit extends RequestInit {
  readonly tls: {
    readonly ca?: string | undefined;
    readonly rejectUnauthorized: boolean;
  };
}

function fetchInit(server: ApiServer, call: ApiRequest): FetchInit {
  const { method = "GET", body, contentType = "application/json", deadlineMs } = call;
  const authorization = bearer(server);
  return {
    method,
    headers: {
      accept: "application/json",
      ...(authorization === undefined ? {} : { authorization }),
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
 * A transport by the `fetch` of the image's runtime, which costs each node 5 MB less than `node:https`. It is for
 * processes that ask now and then: it keeps no connection.
 */
export function fetchTransport(server: ApiServer | (() => ApiServer)): ClosingTransport {
  const send: Transport = async (call) => {
    const now = typeof server === "function" ? server() : server;
    try {
      const response = await fetch(`https://${authority(now)}${call.path}`, fetchInit(now, call));
      return responseOf(response.status, await response.text(), response.headers.get("retry-after"));
    } catch (error) {
      const { name, code } = error as { readonly name?: string; readonly code?: unknown };
      if (name === "TimeoutError") throw new ApiTimeout(authority(now), call.deadlineMs, { cause: error });
      throw new ApiUnreachable(authority(now), typeof code === "string" ? code : reasonOf(error), { cause: error });
    }
  };
  return Object.assign(send, { close: () => undefined });
}
