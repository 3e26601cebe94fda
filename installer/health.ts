import { createServer, type Server } from "node:http";

/** Answers of the health port, by path. */
export type Answers = Readonly<Record<string, () => { readonly status: number; readonly body: string }>>;

const TEXT = "text/plain; version=0.0.4; charset=utf-8";

/** Serves GET on every address of the pod. */
export function serve(port: number, answers: Answers): Server {
  const server = createServer((request, response) => {
    const answer = answers[(request.url ?? "/").split("?")[0] ?? "/"];
    const { status, body } = answer?.() ?? { status: 404, body: "not found\n" };
    response.writeHead(status, { "content-type": TEXT });
    response.end(body);
  });
  return server.listen(port);
}
