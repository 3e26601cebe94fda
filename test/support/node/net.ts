/** Connections as of system/net.ts, by Node's modules: for tests whose subject is not the connection. */
import { chmodSync } from "node:fs";
import { createServer, type Server, type Socket, connect as tcpConnect } from "node:net";
import { createSecureContext, createServer as createTlsServer, type TLSSocket, connect as tlsConnect } from "node:tls";
import type {
  Connection,
  ConnectOptions,
  ListenAddress,
  Listener,
  TcpTarget,
  TlsListener,
  TlsPair,
  TlsTarget,
  UnixListener,
} from "../../../system/net";
import { NetError, type NetFailure } from "../../../system/net-error";

/** Connections that wait to be accepted; the kernel may allow fewer. */
const BACKLOG = 4096;
const EVERY_ADDRESS = "::"; // of both families
const EVERY_IPV4_ADDRESS = "0.0.0.0";

/** Milliseconds to connect on this machine, where connections succeed at once or not at all. */
const LOCAL_MS = 5_000;

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException).code;

function failure(error: Error, kind: NetFailure): NetError {
  return new NetError(error.message, kind, codeOf(error), { cause: error });
}

interface Pending<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

/** A socket of Node, which reads only during a pending read. */
class SocketConnection implements Connection {
  private readonly arrived: Uint8Array[] = [];
  private reading: Pending<Uint8Array | undefined> | undefined;
  private readonly writing = new Set<Pending<void>>();
  private isEnded = false;
  private problem: NetError | undefined;

  constructor(private readonly socket: Socket) {
    socket.pause();
    socket.on("data", (chunk: Buffer) => {
      socket.pause();
      this.arrived.push(chunk);
      this.answer();
    });
    socket.on("end", () => {
      this.isEnded = true;
      this.answer();
    });
    socket.on("error", (error) => this.fail(failure(error, "closed")));
    socket.on("close", () => this.fail(new NetError("the connection is closed", "closed")));
  }

  read(): Promise<Uint8Array | undefined> {
    return new Promise((resolve, reject) => {
      this.reading = { resolve, reject };
      this.answer();
      if (this.reading !== undefined) this.socket.resume();
    });
  }

  write(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.problem !== undefined) return reject(this.problem);
      const pending = { resolve, reject };
      this.writing.add(pending);
      this.socket.write(bytes, (error) => {
        this.writing.delete(pending);
        if (error) reject(failure(error, "closed"));
        else resolve();
      });
    });
  }

  close(): void {
    this.fail(new NetError("the connection is closed", "closed"));
    this.socket.destroy();
  }

  private fail(problem: NetError): void {
    this.problem ??= problem;
    this.answer();
    for (const { reject } of this.writing) reject(this.problem);
    this.writing.clear();
  }

  private answer(): void {
    const { reading } = this;
    if (reading === undefined) return;
    const bytes = this.arrived.shift();
    if (bytes === undefined && !this.isEnded && this.problem === undefined) return;
    this.reading = undefined;
    if (bytes !== undefined || this.problem === undefined) reading.resolve(bytes);
    else reading.reject(this.problem);
  }
}

/** A socket once it is open. */
interface Attempt<T extends Socket> {
  readonly socket: T;
  /** The event that signals the open connection. */
  readonly opened: "connect" | "secureConnect";
  /** The step of an error. */
  readonly kindOf: (error: Error) => NetFailure;
}

function opening<T extends Socket>(attempt: Attempt<T>, { deadlineMs, signal }: ConnectOptions): Promise<Connection> {
  const { socket, opened, kindOf } = attempt;
  return new Promise((resolve, reject) => {
    const settle = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", abort);
      socket.off("error", fail);
      socket.off("close", closed);
    };
    const fail = (error: Error) => {
      settle();
      socket.on("error", () => undefined);
      socket.destroy();
      reject(error instanceof NetError ? error : failure(error, kindOf(error)));
    };
    const closed = () => {
      const error = new Error("the connection was closed");
      fail(failure(error, kindOf(error)));
    };
    const late = () => {
      const error = new Error(`no connection within ${deadlineMs} ms`);
      fail(new NetError(error.message, kindOf(error), "ETIMEDOUT"));
    };
    const abort = () => fail(new NetError("the connection is no longer wanted", "closed"));
    const timer = setTimeout(late, deadlineMs);
    socket.once("error", fail);
    socket.once("close", closed);
    socket.once(opened, () => {
      const connection = new SocketConnection(socket);
      settle();
      resolve(connection);
    });
    if (signal?.aborted) abort();
    else signal?.addEventListener("abort", abort, { once: true });
  });
}

const LOOKUPS: readonly (string | undefined)[] = ["ENOTFOUND", "EAI_AGAIN", "EAI_FAIL", "EAI_NODATA"];
const tcpKind = (error: Error): NetFailure => (LOOKUPS.includes(codeOf(error)) ? "resolve" : "connect");

/** @throws NetError */
export async function connectTcp({ host, port }: TcpTarget, options: ConnectOptions): Promise<Connection> {
  return opening({ socket: tcpConnect({ host, port }), opened: "connect", kindOf: tcpKind }, options);
}

/** Connects to a socket by its path. @throws NetError, with code EAGAIN if too many wait there */
export function connectUnix(path: string): Promise<Connection> {
  const socket = tcpConnect({ path });
  return opening({ socket, opened: "connect", kindOf: () => "connect" }, { deadlineMs: LOCAL_MS });
}

/** Node's error codes for certificates. */
const VERIFY =
  /^(CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|CRL_|ERR_TLS_CERT_|INVALID_|HOSTNAME_MISMATCH|PATH_LENGTH_)/;

/** @throws NetError if OpenSSL cannot read the authority */
function checked(ca: string): void {
  try {
    createSecureContext({ ca });
  } catch (error) {
    throw failure(error as Error, "ca");
  }
}

/** Connects and verifies the server. @throws NetError */
export async function connectTls({ host, port, ca }: TlsTarget, options: ConnectOptions): Promise<Connection> {
  checked(ca);
  const socket: TLSSocket = tlsConnect({ host, port, ca });
  let isConnected = false;
  socket.once("connect", () => {
    isConnected = true;
  });
  const kindOf = (error: Error): NetFailure => {
    if (VERIFY.test(codeOf(error) ?? "")) return "verify";
    return isConnected ? "handshake" : tcpKind(error);
  };
  return opening({ socket, opened: "secureConnect", kindOf }, options);
}

function listening(server: Server, host: string, port: number): Promise<Listener> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port, host, backlog: BACKLOG }, () => {
      server.off("error", reject);
      // Accept failed without a free descriptor; the next one may succeed.
      server.on("error", () => undefined);
      const bound = server.address();
      resolve({
        port: typeof bound === "object" && bound !== null ? bound.port : port,
        close: () => void server.close(),
      });
    });
  });
}

async function listen(create: () => Server, { host, port }: ListenAddress): Promise<Listener> {
  if (host !== undefined) return listening(create(), host, port);
  try {
    return await listening(create(), EVERY_ADDRESS, port);
  } catch {
    return listening(create(), EVERY_IPV4_ADDRESS, port); // a kernel without IPv6; a port that is taken fails again
  }
}

/** @throws Error if the port is in use */
export function listenTcp(at: ListenAddress, taken: (connection: Connection) => void): Promise<Listener> {
  return listen(() => createServer((socket) => taken(new SocketConnection(socket))), at);
}

const OWNER_ONLY = 0o600;

/**
 * Listens on a new path for this user and root: only they can open the file. Node cannot check who connects. @param
 * taken receives each connection @throws Error if the path exists or cannot be created
 */
export async function listenUnix(path: string, taken: (connection: Connection) => void): Promise<UnixListener> {
  const server = createServer((socket) => taken(new SocketConnection(socket)));
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ path, backlog: BACKLOG }, resolve);
  });
  chmodSync(path, OWNER_ONLY);
  return { close: () => void server.close() };
}

/**
 * Listens for TLS 1.2 and 1.3. @param taken receives each connection after its handshake @throws Error if the port is
 * in use or TLS refuses the pair
 */
export async function listenTls(
  at: ListenAddress,
  { cert, key }: TlsPair,
  taken: (connection: Connection) => void,
): Promise<TlsListener> {
  const common = { minVersion: "TLSv1.2", ALPNProtocols: ["http/1.1"] } as const;
  let current: ReturnType<typeof createTlsServer> | undefined;
  const create = () => {
    const server = createTlsServer({ ...common, cert, key });
    server.on("secureConnection", (socket) => taken(new SocketConnection(socket)));
    server.on("tlsClientError", (_, socket) => socket.destroy());
    current = server;
    return server;
  };
  const listener = await listen(create, at);
  return { ...listener, use: (pair) => current?.setSecureContext({ ...pair, minVersion: common.minVersion }) };
}
