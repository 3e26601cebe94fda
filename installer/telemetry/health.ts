export interface Answer {
  readonly status: number;
  readonly body: string;
}

/** Answers of the health port, by path. */
export type Answers = Readonly<Record<string, () => Answer | Promise<Answer>>>;

export interface Server {
  /** Ends it at once, with the connections that are open. */
  stop(closeActiveConnections: boolean): void;
}

/** The runtime's own server; the one of `node:http` costs each node 8 MB more. */
declare const Bun: {
  serve(options: {
    readonly port: number;
    readonly hostname: string;
    readonly development: boolean;
    readonly fetch: (request: { readonly url: string }) => Promise<Response>;
  }): Server;
};

const HEADERS = { "content-type": "text/plain; version=0.0.4; charset=utf-8" };

async function answer(path: string, answers: Answers): Promise<Answer> {
  try {
    return (await answers[path]?.()) ?? { status: 404, body: "not found\n" };
  } catch (error) {
    return { status: 503, body: `${error instanceof Error ? error.message : String(error)}\n` };
  }
}

/** Serves GET on every address of the pod. @throws where the port is taken */
export function serve(port: number, answers: Answers): Server {
  const listen = (hostname: string) =>
    Bun.serve({
      port,
      hostname,
      development: false,
      fetch: async ({ url }) => {
        const { status, body } = await answer(new URL(url).pathname, answers);
        return new Response(body, { status, headers: HEADERS });
      },
    });
  try {
    return listen("::"); // of both families
  } catch {
    return listen("0.0.0.0"); // a kernel without IPv6
  }
}
