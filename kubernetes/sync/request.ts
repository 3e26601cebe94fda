/** Requests to the API server: one connection each, two deadlines, one retry. */
import { Errno } from "../../host/errno";
import type { Host } from "../../host/port";
import { type HttpResponse, ResponseReader } from "../../system/http/message";
import { type ApiServer, ApiUnreachable, authority, bearer } from "../api-server";
import { ConnectionFailed, connect } from "./connect";

/** Milliseconds within which a connection must be made and encrypted; the rest of the deadline is for the answer. */
const CONNECT_MS = 3000;
const CHUNK = 16384;
const TOO_MANY_REQUESTS = 429;
const UNAVAILABLE = 503;

/** @throws Error for a token that is not allowed in a header */
export function encodeRequest(server: ApiServer, path: string): string {
  const authorization = bearer(server);
  const lines = [
    `GET ${path} HTTP/1.1`,
    `Host: ${authority(server)}`,
    "Accept: application/json",
    "User-Agent: linkerd-cni",
    ...(authorization === undefined ? [] : [`Authorization: ${authorization}`]),
  ];
  return `${lines.join("\r\n")}\r\n\r\n`;
}

/** One exchange on an open connection, with the time left for each step, and the whole deadline for messages. */
interface Deadline {
  readonly left: () => number;
  readonly limit: number;
}

/** The number of transferred bytes. @throws ConnectionFailed if the step failed; `dropped` if nothing was received */
function transferred(result: number, isUnanswered: boolean, { limit }: Deadline): number {
  if (result === -Errno.ETIMEDOUT) throw new ConnectionFailed(`no answer within ${limit} ms`);
  if (result < 0) throw new ConnectionFailed("the connection was reset", isUnanswered);
  return result;
}

function exchange(host: Host, request: Uint8Array, deadline: Deadline, meanwhile: () => void): HttpResponse {
  for (let at = 0; at < request.length; ) {
    at += transferred(host.tlsSend(request.subarray(at), deadline.left()), true, deadline);
  }
  meanwhile();
  const reader = new ResponseReader((bytes) => host.decode(bytes));
  const chunk = new Uint8Array(CHUNK);
  for (;;) {
    const size = transferred(host.tlsReceive(chunk, deadline.left()), reader.isEmpty, deadline);
    const response = size === 0 ? reader.end() : reader.receive(chunk.subarray(0, size));
    if (response !== undefined) return response;
    if (size === 0) throw new ConnectionFailed("closed the connection without a whole answer", reader.isEmpty);
  }
}

function attempt(host: Host, server: ApiServer, path: string, left: () => number, meanwhile: () => void): HttpResponse {
  const limit = Math.max(1, left());
  const request = host.encode(encodeRequest(server, path));
  connect(host, server, Math.min(CONNECT_MS, limit));
  try {
    return exchange(host, request, { left, limit }, meanwhile);
  } finally {
    host.tlsClose();
  }
}

/** Milliseconds of a server's Retry-After; a second if it is a date or absent (RFC 9110, section 10.2.3). */
function pauseOf(retryAfter: string | undefined): number {
  return /^\d{1,4}$/.test(retryAfter ?? "") ? Number(retryAfter) * 1000 : 1000;
}

/** Whether the server requests a retry. Without Retry-After, an unavailable server may stay so for long. */
const asksToWait = ({ status, retryAfter }: HttpResponse) =>
  status === TOO_MANY_REQUESTS || (status === UNAVAILABLE && retryAfter !== undefined);

/**
 * An answer, with one retry after the requested pause if the server is overloaded. @param remaining milliseconds left
 */
export function withRetry(host: Host, remaining: () => number, request: () => HttpResponse): HttpResponse {
  const response = request();
  const pause = pauseOf(response.retryAfter);
  if (!asksToWait(response) || pause >= remaining()) return response;
  host.poll(-1, 0, pause);
  return request();
}

/**
 * Gets an object. Retries once if the connection is dropped before the answer begins, and once, after the requested
 * pause, if the server is overloaded. @param deadlineMs milliseconds for everything @param meanwhile work to do while
 * the server answers; it does not throw @throws ApiUnreachable without an answer
 */
export function get(
  host: Host,
  server: ApiServer,
  path: string,
  deadlineMs: number,
  meanwhile: () => void = () => undefined,
): HttpResponse {
  const begin = host.elapsed();
  const remaining = () => deadlineMs - (host.elapsed() - begin);
  const left = () => Math.max(0, Math.round(remaining()));
  let isFirst = true;
  const request = () => {
    try {
      return attempt(host, server, path, left, meanwhile);
    } catch (error) {
      if (!(isFirst && error instanceof ConnectionFailed && error.dropped && remaining() > 0)) throw error;
      return attempt(host, server, path, left, meanwhile);
    } finally {
      isFirst = false;
    }
  };
  try {
    return withRetry(host, remaining, request);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ApiUnreachable(authority(server), reason, { cause: error });
  }
}
