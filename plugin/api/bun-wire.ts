/**
 * Connections by the runtime's own sockets: Node's https module takes 15 ms to load at every pod start, and the
 * runtime's fetch 5 ms, against less than one for this.
 */
import type { ApiServer } from "../../kubernetes/client";
import type { Connect, WireEvents } from "./wire";

interface Socket {
  write(data: string): number;
  end(): void;
  terminate(): void;
}

interface Handlers {
  open(): void;
  handshake(socket: Socket, trusted: boolean, error: Error | null): void;
  data(socket: Socket, bytes: Uint8Array): void;
  drain(socket: Socket): void;
  close(socket: Socket): void;
  end(socket: Socket): void;
  error(socket: Socket, error: Error): void;
  connectError(socket: Socket, error: Error): void;
}

interface TlsOptions {
  rejectUnauthorized: boolean;
  ca?: string;
  serverName?: string;
  cert?: string;
  key?: string;
}

/** The one member of the runtime's global object that is used here. */
declare const Bun: {
  connect(options: { hostname: string; port: number; tls: TlsOptions; socket: Handlers }): Promise<Socket>;
};

function tlsOptions(server: ApiServer): TlsOptions {
  return {
    rejectUnauthorized: server.insecure !== true,
    ...(server.ca === undefined ? {} : { ca: server.ca }),
    ...(server.serverName === undefined ? {} : { serverName: server.serverName }),
    ...(server.certificate ?? {}),
  };
}

const causes: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused",
  ENOTFOUND: "its host name cannot be resolved",
  EHOSTUNREACH: "no route to it",
  ENETUNREACH: "no route to it",
};

/** Why a connection failed; the runtime's own message is often only "Failed to connect". */
function causeOf({ code = "", message }: NodeJS.ErrnoException): string {
  return causes[code] ?? (code === "" || message.includes(code) ? message : `${message} (${code})`);
}

/** Translates the runtime's events; what does not fit in the socket's buffer is sent when there is room again. */
function handlers(server: ApiServer, events: WireEvents): Handlers {
  let unsent = "";
  const push = (socket: Socket) => {
    const written = unsent === "" ? 0 : socket.write(unsent);
    unsent = unsent.slice(Math.max(0, written));
  };
  return {
    // The runtime says hello to the server once this returns, and only then does what is set aside here.
    open: () => void setImmediate(() => events.begun()),
    handshake(socket, trusted, error) {
      if (!trusted && server.insecure !== true) {
        events.ended(`its certificate is not trusted: ${error?.message ?? "no reason given"}`);
        socket.terminate();
        return;
      }
      events.ready({
        send: (text) => {
          unsent += text;
          push(socket);
        },
      });
    },
    data: (_, bytes) => events.received(bytes),
    drain: push,
    end: () => events.ended(),
    close: () => events.ended(),
    error: (_, error) => events.ended(causeOf(error)),
    connectError: (_, error) => events.ended(causeOf(error)),
  };
}

export const connectByRuntime: Connect = (server, events) => {
  const opening = Bun.connect({
    hostname: server.host,
    port: server.port,
    tls: tlsOptions(server),
    socket: handlers(server, events),
  });
  opening.catch((error: Error) => events.ended(causeOf(error)));
  return () => {
    opening.then(
      (socket) => socket.terminate(),
      () => undefined,
    );
  };
};
