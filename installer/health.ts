import { createServer, type Server } from "node:http";

export interface Answer {
  readonly status: number;
  readonly body: string;
}

/** Answers of the health port, by path. */
export type Answers = Readonly<Record<string, () => Answer | Promise<Answer>>>;

const HEADERS = { "content-type": "text/plain; version=0.0.4; charset=utf-8" };

/** Serves GET on every address of the pod. */
export function serve(port: number, answers: Answers, failed: (error: Error) => void): Server {
  const server = createServer((request, response) => {
    const answer = answers[(request.url ?? "/").split("?")[0] ?? "/"] ?? (() => ({ status: 404, body: "not found\n" }));
    const send = ({ status, body }: Answer) => response.writeHead(status, HEADERS).end(body);
    void Promise.resolve()
      .then(answer)
      .catch((error: unknown) => ({ status: 503, body: `${error instanceof Error ? error.message : String(error)}\n` }))
      .then(send);
  });
  return server.on("error", failed).listen(port);
}
