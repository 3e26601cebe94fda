import { get } from "node:http";
import { connect } from "node:net";

/** How a TCP connection began. `silent`: nobody answered, or no connection was possible. */
export type TcpAnswer = "open" | "refused" | "silent";

const TCP_DEADLINE_MS = 1_000;
const HTTP_DEADLINE_MS = 2_000;

/** Connects to a port, sends nothing and closes at once. */
export function probeTcp(host: string, port: number): Promise<TcpAnswer> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const end = (answer: TcpAnswer) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answer);
    };
    const timer = setTimeout(() => end("silent"), TCP_DEADLINE_MS);
    socket.on("connect", () => end("open"));
    socket.on("error", (error: NodeJS.ErrnoException) => end(error.code === "ECONNREFUSED" ? "refused" : "silent"));
  });
}

/** Whether a URL answers with status 200: the installer's `/ready` does when new pods get the plugin. */
export function probeHttp(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const request = get(url, { agent: false, timeout: HTTP_DEADLINE_MS }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    });
    request.on("timeout", () => request.destroy());
    request.on("error", () => resolve(false));
    request.on("close", () => resolve(false));
  });
}
