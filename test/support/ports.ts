import { createServer, type ListenOptions, type Server } from "node:net";

/**
 * Ports below those that the kernel gives to outgoing connections and to listeners without a port: one of these could
 * take a port between the moment that it is handed out and the moment that it is used.
 */
const [FIRST, COUNT] = [20_000, 10_000];

function listens(server: Server, on: ListenOptions): Promise<boolean> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) =>
      error.code === "EADDRINUSE" ? resolve(false) : reject(error),
    );
    server.listen(on, () => resolve(true));
  });
}

/** Whether nothing listens on a port, and no test on this machine has it: an abstract socket tells the others. */
async function isFree(port: number): Promise<boolean> {
  if (!(await listens(createServer().unref(), { path: `\0linkerd-cni-test-port-${port}` }))) return false;
  const server = createServer();
  const is = await listens(server, { port, host: "127.0.0.1" });
  if (is) await new Promise((resolve) => server.close(resolve));
  return is;
}

/** A free port on the loopback address. No test that runs at the same time gets it, too. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = FIRST + Math.floor(Math.random() * COUNT);
    if (await isFree(port)) return port;
  }
}
