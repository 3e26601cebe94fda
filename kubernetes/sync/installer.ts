/** Look-ups through the installer of the same node, over its Unix socket: it has open connections to the API server. */
import { LOOKUP_SOCKET_NAME, NodePath } from "../../cni/contract";
import { Errno } from "../../host/errno";
import { Poll } from "../../host/poll";
import type { Host } from "../../host/port";
import { connectUnix } from "../../host/sockets";
import { type HttpResponse, ResponseReader } from "../../system/http/message";
import { withRetry } from "./request";

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

/** Milliseconds without any bytes after which an installer counts as hanging. */
const SILENCE_MS = 3 * PROCESSING_MS;
/** Answers contain only the fields for decisions about a pod. */
const CHUNK = 4096;
const OK = 200;
const MSG_NOSIGNAL = 0x4000;

/** The installer did not answer, or without an answer of the API server. */
export class InstallerSilent extends Error {
  override readonly name = "InstallerSilent";
}

/** Time limits of an exchange. */
interface Limit {
  readonly end: number;
  readonly silenceMs: number;
}

/** @throws Error for an answer that is not the API server's */
function checked(response: HttpResponse, version: string | undefined): HttpResponse {
  if (response.status !== OK && version === undefined) throw new Error(response.body.trim());
  if (version !== ANSWER_VERSION) throw new Error("it is of another version");
  if (response.status === OK) JSON.parse(response.body);
  return response;
}

/** The next bytes, at least one; undefined once the connection is closed. */
function received(host: Host, socket: number, into: Uint8Array, limit: Limit): Uint8Array | undefined {
  for (;;) {
    const wait = Math.max(0, Math.min(limit.silenceMs, limit.end - host.elapsed()));
    if (host.poll(socket, Poll.input, wait) === 0) throw new Error(`no answer within ${Math.round(wait)} ms`);
    const size = host.receive(socket, into, 0);
    if (size !== -Errno.EAGAIN) return size <= 0 ? undefined : into.subarray(0, size);
  }
}

interface Question {
  readonly path: string;
  /** The directory of the installer's socket. */
  readonly runDir: string;
  readonly silenceMs: number;
  readonly meanwhile: () => void;
}

function ask(host: Host, { path, runDir, silenceMs, meanwhile }: Question, deadlineMs: number): HttpResponse {
  const limit = { end: host.elapsed() + deadlineMs, silenceMs };
  const socket = connectUnix(host, `${runDir}/${LOOKUP_SOCKET_NAME}`);
  try {
    const head = `GET ${path} HTTP/1.1\r\nHost: installer\r\n${DEADLINE_HEADER}: ${Math.round(deadlineMs)}\r\n\r\n`;
    const request = host.encode(head);
    // A new connection has room for it.
    if (host.send(socket, request, MSG_NOSIGNAL) !== request.length) throw new Error("the connection was closed");
    meanwhile();
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
 * Gets an object through the installer, reduced to the fields for decisions, with the same deadline as from the API
 * server.
 * @param deadlineMs milliseconds for everything
 * @param options.runDir the directory of the installer's socket, `/run/linkerd-cni` by default
 * @param options.silenceMs milliseconds without any bytes after which the installer counts as silent
 * @param options.meanwhile work to do while the installer looks it up; it does not throw
 * @throws InstallerSilent without an answer of the API server
 */
export function getByInstaller(
  host: Host,
  path: string,
  deadlineMs: number,
  {
    runDir = NodePath.runDir,
    silenceMs = SILENCE_MS,
    meanwhile = () => undefined,
  }: { readonly [Name in keyof Omit<Question, "path">]?: Question[Name] | undefined } = {},
): HttpResponse {
  const question = { path, runDir, silenceMs, meanwhile };
  const begin = host.elapsed();
  const left = () => Math.max(1, deadlineMs - (host.elapsed() - begin));
  return withRetry(host, left, () => answerOf(host, question, left()));
}

function answerOf(host: Host, question: Question, deadlineMs: number): HttpResponse {
  try {
    return ask(host, question, deadlineMs);
  } catch (error) {
    throw new InstallerSilent(error instanceof Error ? error.message : String(error), { cause: error });
  }
}
