/** Look-ups through the installer of the same node, over its Unix socket: only it has credentials. */
import { LOOKUP_SOCKET_NAME } from "../cni/contract";
import { reasonOf } from "../cni/errors";
import type { Stanza } from "../cni/stanza";
import { Errno } from "../host/errno";
import { Poll } from "../host/files";
import type { Host } from "../host/port";
import { connectUnix } from "../host/sockets";
import { type HttpResponse, MessageError, ResponseReader } from "../system/http/message";

/** The header with the maximum milliseconds that a caller waits. */
export const DEADLINE_HEADER = "x-deadline-ms";
/**
 * The header that marks an answer of the API server; any other answer is the installer's, with the reason. The value
 * changes with `isLookup` and `reducedObject`: an installer of another version may omit fields for decisions.
 */
export const ANSWER_HEADER = "x-lookup-answer";
export const ANSWER_VERSION = "1";
/** Interval of its progress messages about a request, in milliseconds. */
export const PROCESSING_MS = 100;
/** Milliseconds without any bytes after which an installer counts as frozen, if annotations can decide instead. */
const SILENCE_MS = 1000;
/** Milliseconds between attempts to reach an installer that is being replaced. */
const AGAIN_MS = 100;
/** Answers contain only the fields for decisions about a pod. */
const CHUNK = 4096;
const OK = 200;
const TOO_MANY_REQUESTS = 429;
const UNAVAILABLE = 503;
const MSG_NOSIGNAL = 0x4000;

/** Milliseconds of a server's Retry-After; a second if it is a date or absent (RFC 9110, section 10.2.3). */
function pauseOf(retryAfter: string | undefined): number {
  return /^\d{1,4}$/.test(retryAfter ?? "") ? Number(retryAfter) * 1000 : 1000;
}

/** Whether the API server requests a retry. Without Retry-After, an unavailable server may stay so for long. */
const asksToWait = ({ status, retryAfter }: HttpResponse) =>
  status === TOO_MANY_REQUESTS || (status === UNAVAILABLE && retryAfter !== undefined);

interface LookupOptions {
  /** The directory of the installer's socket. */
  readonly runDir: string;
  /** When to give up, in milliseconds of {@link Host.elapsed}. */
  readonly until: number;
  /**
   * Nothing else can decide: waits for an installer that is frozen, or being replaced, until the time is over.
   * Otherwise a frozen installer costs one second.
   */
  readonly isNeeded: boolean;
  /** The installer's pods, for messages. */
  readonly ownPods: Stanza["own-pods"];
}

/**
 * Gets an object of the API server, reduced to the fields for decisions. Retries once, after the requested pause, if the
 * API server is overloaded. @throws Error without an answer of the API server
 */
export function getByInstaller(host: Host, path: string, options: LookupOptions): HttpResponse {
  const response = answerOf(host, path, options);
  const pause = pauseOf(response.retryAfter);
  if (!asksToWait(response) || host.elapsed() + pause >= options.until) return response;
  host.poll(-1, 0, pause);
  return answerOf(host, path, options);
}

/** @throws Error for an answer that is not the API server's */
function answerOf(host: Host, path: string, options: LookupOptions): HttpResponse {
  const { response, version } = exchanged(host, path, options);
  if (response.status !== OK && version === undefined) throw new Error(response.body.trim());
  if (version !== ANSWER_VERSION) throw new Error("the installer on this node is of another version");
  return response;
}

interface Exchange {
  readonly response: HttpResponse;
  /** The value of {@link ANSWER_HEADER}. */
  readonly version: string | undefined;
}

function exchanged(host: Host, path: string, options: LookupOptions): Exchange {
  for (;;) {
    try {
      return exchange(host, path, options);
    } catch (error) {
      if (options.isNeeded && !(error instanceof MessageError) && host.elapsed() + AGAIN_MS < options.until) {
        host.poll(-1, 0, AGAIN_MS);
        continue;
      }
      const { namespace, daemonset } = options.ownPods ?? {};
      const pod = namespace === undefined ? "" : ` (a pod of DaemonSet ${namespace}/${daemonset})`;
      const problem = `the installer on this node${pod} does not answer: ${reasonOf(error)}`;
      throw new Error(`${problem}; the kubelet tries again`, { cause: error });
    }
  }
}

function exchange(host: Host, path: string, options: LookupOptions): Exchange {
  const { runDir, until } = options;
  const socket = connectUnix(host, `${runDir}/${LOOKUP_SOCKET_NAME}`);
  try {
    const deadline = Math.max(1, Math.round(until - host.elapsed()));
    const head = `GET ${path} HTTP/1.1\r\nHost: installer\r\n${DEADLINE_HEADER}: ${deadline}\r\n\r\n`;
    const request = host.encode(head);
    // A new connection has room for it.
    if (host.send(socket, request, MSG_NOSIGNAL) !== request.length) throw new Error("the connection was closed");
    const reader = new ResponseReader((bytes) => host.decode(bytes));
    const chunk = new Uint8Array(CHUNK);
    for (;;) {
      const bytes = received(host, socket, chunk, options);
      const response = bytes === undefined ? reader.end() : reader.receive(bytes);
      if (response !== undefined) return { response, version: reader.stream.head?.headers.get(ANSWER_HEADER) };
      if (bytes !== undefined) continue;
      throw new (reader.isEmpty ? Error : MessageError)("the connection was closed without a whole answer");
    }
  } finally {
    host.close(socket);
  }
}

/** The next bytes, at least one; undefined once the connection is closed. */
function received(
  host: Host,
  socket: number,
  into: Uint8Array,
  { until, isNeeded }: LookupOptions,
): Uint8Array | undefined {
  for (;;) {
    const left = Math.max(0, until - host.elapsed());
    const wait = isNeeded ? left : Math.min(SILENCE_MS, left);
    if (host.poll(socket, Poll.input, wait) === 0) throw new Error(`no answer within ${Math.round(wait)} ms`);
    const size = host.receive(socket, into, 0);
    if (size !== -Errno.EAGAIN) return size <= 0 ? undefined : into.subarray(0, size);
  }
}
