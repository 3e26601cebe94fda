import { Agent, type RequestOptions, request } from "node:https";
import { type ApiResponse, type ApiServer, ApiUnreachable, authority } from "./api-server";

export { type ApiResponse, type ApiServer, ApiUnreachable, authority };

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

/** What `node:https` needs for a call. */
export function requestOptions(
  server: ApiServer,
  call: Omit<ApiRequest, "deadlineMs">,
  payload: string | undefined,
): RequestOptions {
  const headers: Record<string, string | number> = { accept: "application/json" };
  if (server.token !== undefined) headers["authorization"] = `Bearer ${server.token}`;
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

/** A transport over HTTPS that keeps one connection open between requests; `close` ends it. */
export function httpsTransport(server: ApiServer): Transport & { close(): void } {
  const agent = new Agent({ keepAlive: true, maxSockets: 4 });
  const send: Transport = (call) =>
    new Promise((resolve, reject) => {
      const payload = call.body === undefined ? undefined : JSON.stringify(call.body);
      const fail = (reason: string, cause?: unknown) =>
        reject(new ApiUnreachable(authority(server), reason, { cause }));
      const outgoing = request({ ...requestOptions(server, call, payload), agent }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", (error) => fail(error.message, error));
        response.on("end", () => {
          clearTimeout(timer);
          resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString("utf8") });
        });
      });
      const timer = setTimeout(() => {
        fail(`no answer within ${call.deadlineMs} ms`);
        outgoing.destroy();
      }, call.deadlineMs);
      outgoing.on("error", (error) => {
        clearTimeout(timer);
        fail(error.message, error);
      });
      outgoing.end(payload);
    });
  return Object.assign(send, { close: () => agent.destroy() });
}
