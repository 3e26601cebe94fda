import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";

interface Connection {
  /** Requests that are not answered yet. */
  open: number;
  timer: NodeJS.Timeout | undefined;
}

/**
 * The connections of a server, each with a limit on the time without a request, whether it never sent one, sends one
 * too slowly, or was kept open for the next.
 */
export class Connections {
  private readonly all = new Map<Socket, Connection>();
  private ending = false;

  constructor(private readonly idleMs: number) {}

  add(socket: Socket): void {
    const connection: Connection = { open: 0, timer: undefined };
    this.all.set(socket, connection);
    this.wait(socket, connection);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      clearTimeout(connection.timer);
      this.all.delete(socket);
    });
  }

  /** Notes that a request has begun, until its response is closed. */
  begin(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const connection = this.all.get(socket);
    if (connection === undefined) return;
    clearTimeout(connection.timer);
    connection.open += 1;
    if (this.ending) response.setHeader("connection", "close");
    response.on("close", () => {
      connection.open -= 1;
      if (connection.open > 0 || !this.all.has(socket)) return;
      if (this.ending) socket.end();
      else this.wait(socket, connection);
    });
  }

  /** From now on every connection is closed after the response that it waits for. */
  drain(): void {
    this.ending = true;
  }

  /** Ends the connections that wait for no response, and after so long the others. */
  end(patienceMs: number): void {
    this.drain();
    for (const [socket, { open }] of this.all) if (open === 0) socket.end();
    const timer = setTimeout(() => {
      for (const socket of this.all.keys()) socket.destroy();
    }, patienceMs);
    timer.unref();
  }

  private wait(socket: Socket, connection: Connection): void {
    clearTimeout(connection.timer);
    connection.timer = setTimeout(() => socket.destroy(), this.idleMs);
  }
}
