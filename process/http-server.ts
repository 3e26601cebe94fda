import { reasonOf } from "../cni/errors";
import type { Registry } from "./metrics";

export interface Answer {
  readonly status: number;
  readonly body: string;
}

/** Answers by path; one that throws becomes a 503 with its message. */
export type Answers = Readonly<Record<string, () => Answer | Promise<Answer>>>;

/** Where to listen; without a host on every address. */
export interface ListenAddress {
  readonly host?: string;
  readonly port: number;
}

export interface HttpServer {
  /** Where it listens: the one it was given, or for 0 the one it got. */
  readonly port: number;
  /** Ends it at once, with the connections that are open. */
  close(): void;
}

/** The server of the image's runtime; the one of `node:http` costs each node 8 MB more. */
interface Runtime {
  serve(options: {
    readonly port: number;
    readonly hostname: string;
    readonly development: boolean;
    readonly fetch: (request: { readonly url: string }) => Promise<Response>;
  }): { readonly port: number; stop(closeActiveConnections: boolean): void };
}

const HEADERS = { "content-type": "text/plain; version=0.0.4; charset=utf-8" };

const EVERY_ADDRESS = "::"; // of both families
const EVERY_IPV4_ADDRESS = "0.0.0.0";

async function answerTo(path: string, answers: Answers): Promise<Answer> {
  try {
    return (
      (await (Object.hasOwn(answers, path) ? answers[path]?.() : undefined)) ?? { status: 404, body: "not found\n" }
    );
  } catch (error) {
    return health(reasonOf(error));
  }
}

function listenByRuntime({ serve }: Runtime, hostname: string, port: number, answers: Answers): HttpServer {
  const server = serve({
    port,
    hostname,
    development: false,
    fetch: async ({ url }) => {
      const { status, body } = await answerTo(new URL(url).pathname, answers);
      return new Response(body, { status, headers: HEADERS });
    },
  });
  return { port: server.port, close: () => server.stop(true) };
}

async function listenByNode(host: string, port: number, answers: Answers): Promise<HttpServer> {
  // Loaded only here: in the image it is never used.
  const { createServer } = require("node:http") as typeof import("node:http");
  const server = createServer((request, response) => {
    void answerTo((request.url ?? "/").split("?")[0] ?? "/", answers).then(({ status, body }) =>
      response.writeHead(status, HEADERS).end(body),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  const bound = server.address();
  return {
    port: typeof bound === "object" && bound !== null ? bound.port : port,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Serves GET by path. @throws where the address is taken */
export async function serve({ host, port }: ListenAddress, answers: Answers): Promise<HttpServer> {
  const runtime = (globalThis as { readonly Bun?: Runtime }).Bun;
  const listen = async (hostname: string) =>
    runtime === undefined ? listenByNode(hostname, port, answers) : listenByRuntime(runtime, hostname, port, answers);
  if (host !== undefined) return listen(host);
  try {
    return await listen(EVERY_ADDRESS);
  } catch {
    return listen(EVERY_IPV4_ADDRESS); // a kernel without IPv6; a port that is taken fails again
  }
}

/** What a probe gets: 200, or 503 with the problem. */
export function health(problem?: string): Answer {
  return problem === undefined ? { status: 200, body: "ok\n" } : { status: 503, body: `${problem}\n` };
}

/** What Prometheus gets. */
export function metrics(registry: Pick<Registry, "text">): Answer {
  return { status: 200, body: registry.text() };
}
