/** A server whose every byte a test decides: on a new connection, after the TLS handshake, and on a request. */
import type { AddressInfo, Socket } from "node:net";
import { createServer, type Server, type TLSSocket, type TlsOptions } from "node:tls";

/** An encrypted connection, or a request on one. */
export interface Connection {
  /** The stream to write to. */
  readonly socket: TLSSocket;
  /** Path of the request; empty before there is one. */
  readonly path: string;
  /** Requests that the server has had, with this one. */
  readonly count: number;
  /** Breaks the connection off by a TCP reset. */
  reset(): void;
}

export interface TlsServerOptions {
  readonly tls: TlsOptions;
  /** @default "127.0.0.1" */
  readonly address?: string;
  /** Handles a TCP connection. @default a TLS handshake */
  onAccept?(socket: Socket): void;
  /** Handles an encrypted connection. @default each request is answered */
  onHandshake?(connection: Connection): void;
  /** Answers a request. */
  answer(connection: Connection): void;
}

const HEAD_END = "\r\n\r\n";

export class TlsServer {
  connections = 0;
  /** Paths that were asked for, in order. */
  readonly requests: string[] = [];
  private readonly sockets = new Map<string, Socket>();

  private constructor(
    private readonly server: Server,
    private readonly options: TlsServerOptions,
  ) {}

  static async start(options: TlsServerOptions): Promise<TlsServer> {
    const server = createServer(options.tls);
    const made = new TlsServer(server, options);
    // The TLS server's own listener begins the handshake.
    const handshake = server.listeners("connection") as ((socket: Socket) => void)[];
    server.removeAllListeners("connection");
    server.on("connection", (socket: Socket) => made.accept(socket, handshake));
    server.on("secureConnection", (socket) => made.serve(socket));
    server.on("tlsClientError", (_, socket) => socket.destroy());
    await new Promise<void>((resolve) => server.listen(0, options.address ?? "127.0.0.1", resolve));
    return made;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  close(): void {
    this.server.close();
    for (const socket of this.sockets.values()) socket.destroy();
  }

  private accept(socket: Socket, handshake: readonly ((socket: Socket) => void)[]): void {
    this.connections += 1;
    this.sockets.set(`${socket.remotePort}`, socket);
    socket.on("error", () => undefined);
    if (this.options.onAccept === undefined) for (const listener of handshake) listener.call(this.server, socket);
    else this.options.onAccept(socket);
  }

  private serve(socket: TLSSocket): void {
    const raw = this.sockets.get(`${socket.remotePort}`);
    const at = (path: string): Connection => ({
      socket,
      path,
      count: this.requests.length,
      reset: () => raw?.resetAndDestroy(),
    });
    socket.on("error", () => undefined);
    if (this.options.onHandshake === undefined) this.read(socket, at);
    else this.options.onHandshake(at(""));
  }

  private read(socket: TLSSocket, at: (path: string) => Connection): void {
    let received = "";
    socket.setEncoding("latin1").on("data", (text: string) => {
      received += text;
      if (!received.endsWith(HEAD_END)) return;
      const [, path = ""] = received.split(" ");
      received = "";
      this.requests.push(path);
      this.options.answer(at(path));
    });
  }
}
