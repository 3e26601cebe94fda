import { connect } from "node:net";

/** How a TCP connection began: nothing is sent by it. `silent` where nobody answered, or where none could be made. */
export type Knock = "open" | "refused" | "silent";

const PATIENCE_MS = 1_000;

/** Connects, and closes at once. */
export function knock(host: string, port: number): Promise<Knock> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const end = (result: Knock) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(result);
    };
    const timer = setTimeout(() => end("silent"), PATIENCE_MS);
    socket.on("connect", () => end("open"));
    socket.on("error", (error: NodeJS.ErrnoException) => end(error.code === "ECONNREFUSED" ? "refused" : "silent"));
  });
}
