import { reasonOf } from "../cni/errors";
import {
  HttpClient,
  type HttpClientOptions,
  type HttpRequest,
  HttpTimeout,
  type StreamLimits,
} from "../system/http/client";
import { MessageError } from "../system/http/message";
import { type ConnectOptions, connectTls, NetError } from "../system/net";
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

/** A response whose body is read line by line as it arrives. */
export interface Lines {
  readonly status: number;
  /** Ends without an error after the idle time without data. @throws ApiUnreachable if the connection breaks */
  readonly lines: AsyncIterable<string>;
}

/** Options of connections. */
export interface ConnectionOptions
  extends Pick<HttpClientOptions, "usual" | "most" | "answerBytes" | "idleMs" | "ended">,
    Pick<ConnectOptions, "acknowledgeMs" | "probeMs"> {
  /** Maximum milliseconds to connect, within those of the request. @default those of the request */
  readonly connectMs?: number;
}

function clientOf(server: ApiServer, options: ConnectionOptions = {}): HttpClient {
  const { connectMs, acknowledgeMs, probeMs, ...kept } = options;
  const limited = {
    ...(acknowledgeMs === undefined ? {} : { acknowledgeMs }),
    ...(probeMs === undefined ? {} : { probeMs }),
  };
  const connect: HttpClientOptions["connect"] = ({ deadlineMs, signal }) =>
    connectTls(server, { ...limited, deadlineMs: Math.min(deadlineMs, connectMs ?? deadlineMs), signal });
  return new HttpClient({ ...kept, authority: authority(server), connect });
}

function requestOf(
  authorization: string | undefined,
  { method = "GET", path, body, contentType }: Omit<ApiRequest, "deadlineMs">,
) {
  const headers = {
    accept: "application/json",
    ...(authorization === undefined ? {} : { authorization }),
    ...(body === undefined ? {} : { "content-type": contentType ?? "application/json" }),
  };
  const request: HttpRequest = { method, path, headers };
  return body === undefined ? request : { ...request, body: JSON.stringify(body) };
}

function unreachable(server: ApiServer, error: unknown, deadlineMs: number): ApiUnreachable {
  const isLate = error instanceof HttpTimeout || (error instanceof NetError && error.code === "ETIMEDOUT");
  if (isLate) return new ApiTimeout(authority(server), deadlineMs, { cause: error });
  const isTooLarge = error instanceof MessageError && error.status === 413;
  const Failure = isTooLarge ? ApiTooLarge : ApiUnreachable;
  return new Failure(authority(server), reasonOf(error), { cause: error });
}

/** Connections to one API server under one identity. */
interface Connections {
  readonly identity: string;
  readonly server: ApiServer;
  readonly client: HttpClient;
  /** The header that shows the token, once a request has needed it. */
  authorization?: string | undefined;
}

/**
 * A transport over HTTPS that keeps connections open between requests, for some seconds. @param server called before
 * each request if it is a function: the transport reconnects when the token or the certificates change. Running
 * requests finish over the old connections.
 */
export function httpsTransport(
  server: ApiServer | (() => ApiServer),
  options: ConnectionOptions = {},
): ClosingTransport {
  let current: Connections | undefined;
  const connections = (): Connections => {
    const now = typeof server === "function" ? server() : server;
    if (current?.server === now) return current;
    const identity = JSON.stringify(now);
    if (current?.identity === identity) {
      current = { ...current, server: now };
      return current;
    }
    current?.client.close();
    current = { identity, server: now, client: clientOf(now, options) };
    return current;
  };
  const send: Transport = async (call) => {
    const used = connections();
    try {
      used.authorization ??= bearer(used.server);
      return await used.client.request(requestOf(used.authorization, call), call.deadlineMs);
    } catch (error) {
      throw unreachable(used.server, error, call.deadlineMs);
    }
  };
  return Object.assign(send, { close: () => current?.client.close() });
}

async function* readLines(server: ApiServer, lines: AsyncIterable<string>, limits: StreamLimits) {
  try {
    yield* lines;
  } catch (error) {
    throw unreachable(server, error, limits.connectMs);
  }
}

/** Requests a streamed response, on a separate connection. @throws ApiUnreachable */
export async function openStream(server: ApiServer, path: string, limits: StreamLimits): Promise<Lines> {
  try {
    const { status, lines } = await clientOf(server).stream(requestOf(bearer(server), { path }), limits);
    return { status, lines: readLines(server, lines, limits) };
  } catch (error) {
    throw unreachable(server, error, limits.connectMs);
  }
}
