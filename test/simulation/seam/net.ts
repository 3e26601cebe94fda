/** `system/net` on the simulated machine. */
import type * as net from "../../../system/net";
import { NetError } from "../../../system/net-error";
import { type Failure, kernel, type Socket, type Target } from "./kernel";

const failed = ({ failure }: Failure) =>
  new NetError(failure.message, failure.code === "" ? "closed" : "connect", failure.code || undefined);

const isFailure = (answer: object | undefined): answer is Failure => answer !== undefined && "failure" in answer;

const connection = (socket: Socket): net.Connection => ({
  read: async () => {
    const answer = await new Promise<Uint8Array | undefined | Failure>((resolve) => socket.read(resolve));
    if (isFailure(answer)) throw failed(answer);
    return answer;
  },
  write: async (bytes) => {
    const answer = socket.write(bytes);
    if (answer !== undefined) throw failed(answer);
  },
  close: () => socket.close(),
});

async function connect(target: Target, signal?: AbortSignal): Promise<net.Connection> {
  const answer = await new Promise<Socket | Failure>((resolve) => {
    const { abort } = kernel.connect(target, resolve);
    signal?.addEventListener("abort", abort);
  });
  if (isFailure(answer)) throw failed(answer);
  return connection(answer);
}

export const connectTcp: typeof net.connectTcp = (_to, { deadlineMs, signal }) => connect({ deadlineMs }, signal);
export const connectTls: typeof net.connectTls = (_to, { deadlineMs, signal }) => connect({ deadlineMs }, signal);
export const connectUnix: typeof net.connectUnix = (path) => connect({ path, deadlineMs: 5_000 });

export const listenTcp = async ({ port }: net.ListenAddress, taken: (connection: net.Connection) => void) =>
  kernel.listen(port, (socket) => taken(connection(socket)));
export const listenUnix: typeof net.listenUnix = async (path, taken) =>
  kernel.listen(path, (socket) => taken(connection(socket)));
export const listenTls: typeof net.listenTls = async () => {
  throw new Error("no installer serves TLS");
};
