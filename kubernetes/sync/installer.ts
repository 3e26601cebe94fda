/** Look-ups by the installer of the same node, over its Unix socket: it has connections to the API server open. */
import { LOOKUP_SOCKET } from "../../cni/contract";
import { Errno } from "../../host/errno";
import { Poll } from "../../host/poll";
import type { Host } from "../../host/port";
import { connectUnix } from "../../host/sockets";
import { type HttpResponse, ResponseReader } from "../../system/http/message";
import { patiently } from "./request";

/** The header with the milliseconds that a caller waits at most. */
export const DEADLINE_HEADER = "x-deadline-ms";
/**
 * The header that marks an answer of the API server; any other answer is the installer's own and says why it has none.
 * The value changes with `isLookup` and `reducedObject`: an installer of another version may leave out what decides here.
 */
export const ANSWER_HEADER = "x-lookup-answer";
export const ANSWER_VERSION = "1";
/** How often it says that it is still at work on a request, in milliseconds. */
export const PROCESSING_MS = 100;

/** Milliseconds without a sign of life after which an installer hangs, or has too little processor time. */
const SILENCE_MS = 3 * PROCESSING_MS;
/** An answer has what decides about a pod, and no more. */
const CHUNK = 4096;
const OK = 200;
const MSG_NOSIGNAL = 0x4000;

/** The installer has not answered, or not from the API server. */
export class InstallerSilent extends Error {
  override readonly name = "InstallerSilent";
}

/** How long an exchange may take. */
interface Limit {
  readonly end: number;
  readonly silenceMs: number;
}

/** @throws Error for what is not an answer of the API server */
function checked(response: HttpResponse, version: string | undefined): HttpResponse {
  if (response.status !== OK && version === undefined) throw new Error(response.body.trim());
  if (version !== ANSWER_VERSION) throw new Error("it is of another version");
  if (response.status === OK) JSON.parse(response.body);
  return response;
}

/** What arrives next, at least one byte; undefined once the connection is closed. */
function received(host: Host, socket: number, into: Uint8Array, limit: Limit): Uint8Array | undefined {
  for (;;) {
    const wait = Math.max(0, Math.min(limit.silenceMs, limit.end - host.elapsed()));
    if (host.poll(socket, Poll.input, wait) === 0) throw new Error(`no answer within ${Math.round(wait)} ms`);
    const size = host.receive(socket, into, 0);
    if (size !== -Errno.EAGAIN) return size <= 0 ? undefined : into.subarray(0, size);
  }
}

function ask(host: Host, path: string, deadlineMs: number, silenceMs: number): HttpResponse {
  const limit = { end: host.elapsed() + deadlineMs, silenceMs };
  const socket = connectUnix(host, LOOKUP_SOCKET);
  try {
    const head = `GET ${path} HTTP/1.1\r\nHost: installer\r\n${DEADLINE_HEADER}: ${Math.round(deadlineMs)}\r\n\r\n`;
    const request = host.encode(head);
    // A new connection has room for it.
    if (host.send(socket, request, MSG_NOSIGNAL) !== request.length) throw new Error("the connection was closed");
    const reader = new ResponseReader((bytes) => host.decode(bytes));
    const chunk = new Uint8Array(CHUNK);
    for (;;) {
      const bytes = received(host, socket, chunk, limit);
      const response = bytes === undefined ? reader.end() : reader.receive(bytes);
      if (response !== undefined) return checked(response, reader.stream.head?.headers.get(ANSWER_HEADER));
      if (bytes === undefined) throw new Error("the connection was closed");
    }
  } finally {
    host.close(socket);
  }
}

/**
 * Gets an object, reduced to what decides about a pod, by the installer; as patiently as from the API server.
 * @param deadlineMs milliseconds for everything
 * @param silenceMs milliseconds without a sign of life after which the installer counts as silent
 * @throws InstallerSilent if it gives no answer of the API server
 */
export function getByInstaller(host: Host, path: string, deadlineMs: number, silenceMs = SILENCE_MS): HttpResponse {
  const begin = host.elapsed();
  const left = () => Math.max(1, deadlineMs - (host.elapsed() - begin));
  return patiently(host, left, () => answerOf(host, path, left(), silenceMs));
}

function answerOf(host: Host, path: string, deadlineMs: number, silenceMs: number): HttpResponse {
  try {
    return ask(host, path, deadlineMs, silenceMs);
  } catch (error) {
    throw new InstallerSilent(error instanceof Error ? error.message : String(error), { cause: error });
  }
}
