import { createServer } from "node:net";

/** Those that were given to somebody: who asks again before they are in use must not get them. */
const given = new Set<number>();

function unused(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

/** A port of the loopback that nobody listens on, never the same twice in a process. */
export async function freePort(): Promise<number> {
  const port = await unused();
  if (given.has(port)) return freePort();
  given.add(port);
  return port;
}
