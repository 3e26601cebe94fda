import { createServer } from "node:net";

/** Ports that were handed out: they must not be handed out again before they are in use. */
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

/** A free port on the loopback address, never the same twice in a process. */
export async function freePort(): Promise<number> {
  const port = await unused();
  if (given.has(port)) return freePort();
  given.add(port);
  return port;
}
