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
  /** The error of a connection that was reset. */
  close(socket: Socket, error?: Error): void;
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

/** The runtime says "refused" of every connection that it could not make, whether there is a way to the server or not. */
const causes: Readonly<Record<string, string>> = {
  ECONNREFUSED: "connection refused, or no route to it",
  ECONNRESET: "the connection was reset",
  EACCES: "the node forbids the connection",
  EPERM: "the node forbids the connection",
  ENOTFOUND: "its host name cannot be resolved",
};

/** Why a connection failed; the runtime's own message is often only "Failed to connect". */
function causeOf({ code = "", message }: NodeJS.ErrnoException): string {
  return causes[code] ?? (code === "" || message.includes(code) ? message : `${message} (${code})`);
}

const BROKE = "the connection broke during the TLS handshake";

/** What is wrong with a certificate has a name of several words, what is wrong with a connection one of one. */
const isOfConnection = (code: string) => /^E[A-Z]+$/.test(code);

/** Tells of a handshake that failed; false where it did not. */
function hasFailed(trusted: boolean, error: NodeJS.ErrnoException | null, server: ApiServer, events: WireEvents) {
  const { code = "", message } = error ?? { message: "no reason given" };
  if (code === "ECONNRESET") events.ended(BROKE);
  else if (isOfConnection(code)) events.refused(`the TLS handshake failed: ${message}`);
  else if ((trusted && error === null) || server.insecure === true) return false;
  else events.refused(`its certificate is not trusted: ${message}`);
  return true;
}

/** Translates the runtime's events; what does not fit in the socket's buffer is sent when there is room again. */
function handlers(server: ApiServer, events: WireEvents): Handlers {
  let unsent = "";
  let isReady = false;
  const push = (socket: Socket) => {
    const written = unsent === "" ? 0 : socket.write(unsent);
    unsent = unsent.slice(Math.max(0, written));
  };
  return {
    // The runtime says hello to the server once this returns, and only then does what is set aside here.
    open: () => void setImmediate(() => events.begun()),
    handshake(socket, trusted, error) {
      if (hasFailed(trusted, error, server, events)) return socket.terminate();
      isReady = true;
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
    close: (_, error) => events.ended(isReady ? error && causeOf(error) : BROKE),
    error: (_, error) => events.ended(causeOf(error)),
    connectError: (_, error) => events.refused(causeOf(error)),
  };
}

export const connectByRuntime: Connect = (server, events) => {
  const opening = Bun.connect({
    hostname: server.host,
    port: server.port,
    tls: tlsOptions(server),
    socket: handlers(server, events),
  });
  opening.catch((error: Error) => events.refused(causeOf(error)));
  return () => {
    opening.then(
      (socket) => socket.terminate(),
      () => undefined,
    );
  };
};
