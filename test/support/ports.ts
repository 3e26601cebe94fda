import { createServer } from "node:net";

/**
 * Ports below those that the kernel gives to outgoing connections and to listeners without a port: one of these could
 * take a port between the moment that it is handed out and the moment that it is used.
 */
const [FIRST, COUNT] = [20_000, 10_000];

/** Ports that were handed out: they must not be handed out again before they are in use. */
const given = new Set<number>();

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", (error: NodeJS.ErrnoException) =>
      error.code === "EADDRINUSE" ? resolve(false) : reject(error),
    );
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

/** A free port on the loopback address, never the same twice in a process. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * COUNT);
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    return port;
  }
}
