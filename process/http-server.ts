import { reasonOf } from "../cni/errors";
import { HttpServer as Server, type ServerRequest, type ServerResponse } from "../system/http/server";
import { type ListenAddress, listenTcp } from "../system/net";
import type { Registry } from "./metrics";

export type { ListenAddress };

export interface Answer {
  readonly status: number;
  readonly body: string;
}

/** Answers by path; an error becomes a 503 with its message. */
export type Answers = Readonly<Record<string, () => Answer | Promise<Answer>>>;

export interface HttpServer {
  /** The actual port, also if 0 was requested. */
  readonly port: number;
  /** Ends it at once, with all open connections. */
  close(): void;
}

const HEADERS = { "content-type": "text/plain; version=0.0.4; charset=utf-8" };
/** Any client may connect, and each connection ends with its answer. */
const LIMITS = { connections: 256, headBytes: 8 * 1024, idleMs: 10_000, sendMs: 5_000 };

async function answerTo({ method, target }: ServerRequest, answers: Answers): Promise<ServerResponse> {
  const path = target.split("?")[0] ?? "/";
  const answer = Object.hasOwn(answers, path) ? answers[path] : undefined;
  if (answer === undefined) return { status: 404, headers: HEADERS, body: "not found\n" };
  if (method !== "GET" && method !== "HEAD") {
    return { status: 405, headers: { ...HEADERS, allow: "GET, HEAD" }, body: "method not allowed\n" };
  }
  try {
    return { ...(await answer()), headers: HEADERS };
  } catch (error) {
    return { ...health(reasonOf(error)), headers: HEADERS };
  }
}

/** Serves GET by path. @throws if the address is in use */
export async function serve(at: ListenAddress, answers: Answers): Promise<HttpServer> {
  const server = new Server({ ...LIMITS, answer: (request) => answerTo(request, answers) });
  server.drain();
  const listener = await listenTcp(at, server.take);
  const close = () => {
    listener.close();
    void server.close(0);
  };
  return { port: listener.port, close };
}

/** The answer to a probe: 200, or 503 with the problem. */
export function health(problem?: string): Answer {
  return problem === undefined ? { status: 200, body: "ok\n" } : { status: 503, body: `${problem}\n` };
}

/** The answer to Prometheus. */
export function metrics(registry: Pick<Registry, "text">): Answer {
  return { status: 200, body: registry.text() };
}
