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
/** The status with which the installer says that it has no answer of the API server; the body says why. */
export const NO_ANSWER = 502;
/** How often it says that it is still at work on a request, in milliseconds. */
export const PROCESSING_MS = 100;

/** Milliseconds without a sign of life after which an installer hangs, or has too little processor time. */
const SILENCE_MS = 3 * PROCESSING_MS;
/** An answer has what decides about a pod, and no more. */
const CHUNK = 4096;
const MSG_NOSIGNAL = 0x4000;

/** The installer has not answered, or not from the API server. */
export class InstallerSilent extends Error {
  override readonly name = "InstallerSilent";
}

/** What arrives next, at least one byte; undefined once the connection is closed. */
function received(host: Host, socket: number, into: Uint8Array, end: number): Uint8Array | undefined {
  for (;;) {
    const wait = Math.max(0, Math.min(SILENCE_MS, end - host.elapsed()));
    if (host.poll(socket, Poll.input, wait) === 0) throw new Error(`no answer within ${Math.round(wait)} ms`);
    const size = host.receive(socket, into, 0);
    if (size !== -Errno.EAGAIN) return size <= 0 ? undefined : into.subarray(0, size);
  }
}

function ask(host: Host, path: string, deadlineMs: number): HttpResponse {
  const end = host.elapsed() + deadlineMs;
  const socket = connectUnix(host, LOOKUP_SOCKET);
  try {
    const head = `GET ${path} HTTP/1.1\r\nHost: installer\r\n${DEADLINE_HEADER}: ${Math.round(deadlineMs)}\r\n\r\n`;
    const request = host.encode(head);
    // A new connection has room for it.
    if (host.send(socket, request, MSG_NOSIGNAL) !== request.length) throw new Error("the connection was closed");
    const reader = new ResponseReader((bytes) => host.decode(bytes));
    const chunk = new Uint8Array(CHUNK);
    for (;;) {
      const bytes = received(host, socket, chunk, end);
      const response = bytes === undefined ? reader.end() : reader.receive(bytes);
      if (response !== undefined) return response;
      if (bytes === undefined) throw new Error("the connection was closed");
    }
  } finally {
    host.close(socket);
  }
}

/**
 * Gets an object, reduced to what decides about a pod, by the installer; as patiently as from the API server.
 * @param deadlineMs milliseconds for everything; an installer that shows no sign of life has less
 * @throws InstallerSilent if it gives no answer of the API server
 */
export function getByInstaller(host: Host, path: string, deadlineMs: number): HttpResponse {
  const begin = host.elapsed();
  const left = () => Math.max(1, deadlineMs - (host.elapsed() - begin));
  return patiently(host, left, () => answerOf(host, path, left()));
}

function answerOf(host: Host, path: string, deadlineMs: number): HttpResponse {
  let response: HttpResponse;
  try {
    response = ask(host, path, deadlineMs);
  } catch (error) {
    throw new InstallerSilent(error instanceof Error ? error.message : String(error), { cause: error });
  }
  if (response.status === NO_ANSWER) throw new InstallerSilent(response.body.trim());
  return response;
}
