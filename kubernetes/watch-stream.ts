import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { StringDecoder } from "node:string_decoder";
import { type ApiServer, ApiUnreachable, authority } from "./api-server";
import { requestOptions } from "./transport";

/** A response whose body is read line by line while it comes. */
export interface Lines {
  readonly status: number;
  /** @throws ApiUnreachable where the connection breaks */
  readonly lines: AsyncIterable<string>;
}

export interface StreamLimits {
  /** Milliseconds until the response begins. */
  readonly connectMs: number;
  /** A connection that says nothing for so long is ended: its other end may be gone without a word. */
  readonly idleMs: number;
  readonly signal: AbortSignal;
}

async function* linesOf(server: ApiServer, response: IncomingMessage, idleMs: number): AsyncGenerator<string> {
  const decoder = new StringDecoder("utf8");
  const silence = new Error(`silent for ${idleMs} ms`);
  let isSilent = false;
  const idle = setTimeout(() => {
    isSilent = true;
    response.destroy(silence);
  }, idleMs);
  let rest = "";
  try {
    for await (const chunk of response) {
      idle.refresh();
      const parts = (rest + decoder.write(chunk as Buffer)).split("\n");
      rest = parts.pop() ?? "";
      yield* parts;
    }
    if (rest !== "") yield rest;
  } catch (error) {
    if (isSilent) return;
    throw new ApiUnreachable(authority(server), (error as Error).message, { cause: error });
  } finally {
    clearTimeout(idle);
    response.destroy();
  }
}

/** Asks for a response without an end. @throws ApiUnreachable */
export function openStream(server: ApiServer, path: string, limits: StreamLimits): Promise<Lines> {
  return new Promise((resolve, reject) => {
    const fail = (error: Error) => reject(new ApiUnreachable(authority(server), error.message, { cause: error }));
    const outgoing = request(
      { ...requestOptions(server, { path }, undefined), agent: false, signal: limits.signal },
      (response) => {
        clearTimeout(timer);
        resolve({ status: response.statusCode ?? 0, lines: linesOf(server, response, limits.idleMs) });
      },
    );
    const timer = setTimeout(
      () => outgoing.destroy(new Error(`no answer within ${limits.connectMs} ms`)),
      limits.connectMs,
    );
    outgoing.on("error", (error) => {
      clearTimeout(timer);
      fail(error);
    });
    outgoing.end();
  });
}
