import { reasonOf } from "../cni/errors";
import {
  HttpClient,
  type HttpClientOptions,
  type HttpRequest,
  type HttpStream,
  HttpTimeout,
  type StreamLimits,
} from "../system/http/client";
import { MessageError } from "../system/http/message";
import { type ConnectOptions, connectTls } from "../system/net";
import { NetError } from "../system/net-error";
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

/** One request, one response; rejects with {@link ApiUnreachable} without a response. */
export type Transport = (request: ApiRequest) => Promise<ApiResponse>;

/** A transport that keeps connections for some seconds, or until it is closed. */
export type ClosingTransport = Transport & { close(): void };

/** No answer within the deadline; the server may have processed the request. */
export class ApiTimeout extends ApiUnreachable {
  override readonly name = "ApiTimeout";
  constructor(server: string, deadlineMs: number, options?: ErrorOptions) {
    super(server, `no answer within ${deadlineMs} ms`, options);
  }
}

/** The answer exceeds the size limit; a list of fewer objects may not. */
export class ApiTooLarge extends ApiUnreachable {
  override readonly name = "ApiTooLarge";
}

/** Objects of one page of a list. */
export const PAGE = 500;

/**
 * The smaller limit to retry a list with if the answer was too large; undefined at the minimum, or for another error.
 */
export function smallerPage(limit: number, error: unknown): number | undefined {
  return error instanceof ApiTooLarge && limit > 1 ? Math.ceil(limit / 8) : undefined;
}

/** Requests a streamed response, on a separate connection. Its errors are {@link ApiUnreachable}. */
export type OpenStream = (path: string, limits: StreamLimits) => Promise<HttpStream>;

/** Options of connections. */
export interface ConnectionOptions
  extends Pick<HttpClientOptions, "connections" | "answerBytes" | "idleMs" | "ended">,
    Pick<ConnectOptions, "acknowledgeMs" | "probeMs"> {
  /** Maximum milliseconds to connect, within those of the request. @default those of the request */
  readonly connectMs?: number;
}

function clientOf(server: ApiServer, options: ConnectionOptions = {}): HttpClient {
  const { connectMs, acknowledgeMs, probeMs, ...kept } = options;
  const connect: HttpClientOptions["connect"] = ({ deadlineMs, signal }) =>
    connectTls(server, {
      ...{ acknowledgeMs, probeMs, signal },
      deadlineMs: Math.min(deadlineMs, connectMs ?? deadlineMs),
    });
  return new HttpClient({ ...kept, authority: authority(server), connect });
}

function requestOf(authorization: string, { method = "GET", path, body, contentType }: Omit<ApiRequest, "deadlineMs">) {
  const headers = {
    accept: "application/json",
    authorization,
    ...(body === undefined ? {} : { "content-type": contentType ?? "application/json" }),
  };
  const request: HttpRequest = { method, path, headers };
  return body === undefined ? request : { ...request, body: JSON.stringify(body) };
}

function unreachable(server: ApiServer, error: unknown, deadlineMs: number): ApiUnreachable {
  const isLate = error instanceof HttpTimeout || (error instanceof NetError && error.code === "ETIMEDOUT");
  const afterMs = error instanceof HttpTimeout ? error.deadlineMs : deadlineMs;
  if (isLate) return new ApiTimeout(authority(server), afterMs, { cause: error });
  const isTooLarge = error instanceof MessageError && error.status === 413;
  const Failure = isTooLarge ? ApiTooLarge : ApiUnreachable;
  return new Failure(authority(server), reasonOf(error), { cause: error });
}

/** What an established connection depends on; the token is a header of each request. */
const isSameServer = (one: ApiServer, other: ApiServer): boolean =>
  one.host === other.host && one.port === other.port && one.ca === other.ca;

/**
 * Connections to one API server that are kept between requests, for some seconds. Requests with different tokens share
 * them. If the address or the authority changes, later requests connect again, and running ones finish over the old
 * connections.
 */
export class ApiConnections {
  private current: { readonly server: ApiServer; readonly client: HttpClient } | undefined;

  constructor(private readonly options: ConnectionOptions = {}) {}

  /** Sends a request with the token of a server's access. @throws ApiUnreachable without an answer */
  async send(server: ApiServer, call: ApiRequest): Promise<ApiResponse> {
    try {
      return await this.clientOf(server).request(requestOf(bearer(server), call), call.deadlineMs);
    } catch (error) {
      throw unreachable(server, error, call.deadlineMs);
    }
  }

  close(): void {
    this.current?.client.close();
  }

  private clientOf(server: ApiServer): HttpClient {
    if (this.current !== undefined && isSameServer(this.current.server, server)) return this.current.client;
    this.close();
    this.current = { server, client: clientOf(server, this.options) };
    return this.current.client;
  }
}

/** A transport over HTTPS with connections of its own. @param server called before each request if it is a function */
export function httpsTransport(
  server: ApiServer | (() => ApiServer),
  options: ConnectionOptions = {},
): ClosingTransport {
  const connections = new ApiConnections(options);
  const send: Transport = async (call) => connections.send(typeof server === "function" ? server() : server, call);
  return Object.assign(send, { close: () => connections.close() });
}

async function* readParts(server: ApiServer, parts: HttpStream["parts"], limits: StreamLimits) {
  try {
    yield* parts;
  } catch (error) {
    throw unreachable(server, error, limits.connectMs);
  }
}

/** Opens streams of an API server. @param server called before each request */
export function httpsStreams(server: () => ApiServer): OpenStream {
  return async (path, limits) => {
    const to = server();
    try {
      const { status, parts } = await clientOf(to).stream(requestOf(bearer(to), { path }), limits);
      return { status, parts: readParts(to, parts, limits) };
    } catch (error) {
      throw unreachable(to, error, limits.connectMs);
    }
  };
}
