import { createServer, type Server } from "node:http";

export interface Answer {
  readonly status: number;
  readonly body: string;
}

/** Answers by path. */
export type Answers = Readonly<Record<string, () => Answer | Promise<Answer>>>;

/** Where to listen; without a host on every address. */
export interface ListenAddress {
  readonly host?: string;
  readonly port: number;
}

const HEADERS = { "content-type": "text/plain; version=0.0.4; charset=utf-8" };
const NOT_FOUND: Answer = { status: 404, body: "not found\n" };

/** Serves GET. @throws where the address is taken */
export async function serve({ host, port }: ListenAddress, answers: Answers): Promise<Server> {
  const server = createServer((request, response) => {
    const answer = answers[(request.url ?? "/").split("?")[0] ?? "/"];
    void Promise.resolve(answer?.() ?? NOT_FOUND).then(({ status, body }) =>
      response.writeHead(status, HEADERS).end(body),
    );
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  return server;
}
