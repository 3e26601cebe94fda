/** Connections. */
import { quoted } from "../cni/errors";
import { parseAddress } from "../cni/subnets";
import { checked, Errno, errnoName, SystemError } from "../host/errno";
import type { TlsConnection, TlsFailure, TlsIdentity, TlsWants } from "../host/port";
import {
  AF,
  beginConnection,
  connectUnix as connectTo,
  limitAcknowledgement,
  listenTcp as listenOn,
  listenUnix as listenPath,
  peerUid,
  probe,
  sendAtOnce,
} from "../host/sockets";
import { reasonOf } from "../host/tls-failure";
import { host } from "./engine/host";
import { inChild, onReadable, ready } from "./engine/loop";
import { NetError, type NetFailure } from "./net-error";

export interface Connection {
  /**
   * The received bytes, at least one; undefined once the other end has closed its side. One read at a time. @throws
   * NetError
   */
  read(): Promise<Uint8Array | undefined>;
  /** Resolves once the kernel has accepted all bytes. @throws NetError */
  write(bytes: Uint8Array): Promise<void>;
  /** Ends the connection at once; pending reads and writes reject. May be called again. */
  close(): void;
}

export interface Listener {
  /** The actual port, also if 0 was requested. */
  readonly port: number;
  /** Accepts no more connections. */
  close(): void;
}

/** A certificate and its key, PEM. */
export interface TlsPair {
  readonly cert: string;
  readonly key: string;
}

export interface TlsListener extends Listener {
  /** Uses another certificate for new connections. @throws Error if TLS refuses it, and the former one stays */
  use(pair: TlsPair): void;
}

export interface TcpTarget {
  /** Host name or address, IPv6 without brackets. */
  readonly host: string;
  readonly port: number;
}

export interface TlsTarget extends TcpTarget {
  /** PEM certificates that the server's must chain to. Its own must be for the host. */
  readonly ca: string;
}

export interface ConnectOptions {
  /** Milliseconds to connect, including the TLS handshake. */
  readonly deadlineMs: number;
  /** Ends the attempt. */
  readonly signal?: AbortSignal;
  /**
   * Milliseconds without an acknowledgement of sent data after which a connection ends.
   * @default the kernel's: a quarter of an hour
   */
  readonly acknowledgeMs?: number | undefined;
  /**
   * Milliseconds after which an idle connection is probed, at least a second, so that it ends in the same way.
   * @default never
   */
  readonly probeMs?: number | undefined;
}

export interface ListenAddress {
  /** @default every address of both families; of IPv4 alone if the kernel has no IPv6 */
  readonly host?: string;
  readonly port: number;
}

/** Time before the next address is also tried (RFC 8305). */
const STAGGER_MS = 250;
/** Maximum addresses of a host to try. */
const MOST_ADDRESSES = 8;
/** Connections that a listener accepts before other work continues: about 2 ms. */
const BATCH = 64;
/** Milliseconds until a listener without a free descriptor or memory tries again. */
const PAUSE_MS = 100;
/** Maximum connections of a listener whose clients have sent nothing yet; the oldest is closed for a new one. */
const MOST_SILENT = 192;
/** Milliseconds within which a client must send something. */
const SILENT_MS = 10_000;
/** Milliseconds to wait for addresses of the other family once there are addresses of one. */
const OTHER_FAMILY_MS = 50;
/** Milliseconds to look up the address of a listener. */
const LOOKUP_MS = 5_000;
const SOL_SOCKET = 1;
const SO_ERROR = 4;
const ACCEPT_FLAGS = 0x80800; // SOCK_CLOEXEC, SOCK_NONBLOCK
const MSG_NOSIGNAL = 0x4000;
const MSG_PEEK = 2;

/** The bytes received last: each connection takes its bytes at once, and none has a buffer of its own. */
const received = new Uint8Array(16_384);

/** Transfers bytes without waiting; a negative count is a negated errno. */
interface Channel {
  readonly socket: number;
  send(bytes: Uint8Array): number | TlsWants;
  receive(into: Uint8Array): number | TlsWants;
  close(): void;
}

const wants = (result: number, what: TlsWants) => (result === -Errno.EAGAIN ? what : result);

function plainChannel(socket: number): Channel {
  return {
    socket,
    send: (bytes) => wants(host.send(socket, bytes, MSG_NOSIGNAL), "write"),
    receive: (into) => wants(host.receive(socket, into, 0), "read"),
    close: () => void host.close(socket),
  };
}

function tlsChannel(socket: number, connection: TlsConnection): Channel {
  return {
    socket,
    send: (bytes) => host.tlsWrite(connection, bytes),
    receive: (into) => host.tlsRead(connection, into),
    close: () => host.tlsEnd(connection),
  };
}

const CLOSED = new NetError("the connection is closed", "closed");

class EngineConnection implements Connection {
  private readonly end = new AbortController();
  private written: Promise<void> = Promise.resolve();
  /** Unfinished writes. */
  private unwritten = 0;

  /** @param hasInput whether the other end speaks first, and usually has by now: the first read need not wait for it */
  constructor(
    private readonly channel: Channel,
    private hasInput = false,
  ) {}

  async read(): Promise<Uint8Array | undefined> {
    let bytes: Uint8Array | undefined;
    const first = this.hasInput ? undefined : "read";
    this.hasInput = false;
    await this.moved(first, () => {
      const size = this.channel.receive(received);
      if (typeof size === "number" && size > 0) bytes = received.slice(0, size);
      return size;
    });
    return bytes;
  }

  write(bytes: Uint8Array): Promise<void> {
    const write = async () => {
      for (let at = 0; at < bytes.length; )
        at += await this.moved(at === 0 ? undefined : "write", () => this.channel.send(bytes.subarray(at)));
    };
    // Without earlier writes, it is sent before this returns.
    const done = this.unwritten === 0 ? write() : this.written.then(write);
    this.unwritten += 1;
    const over = () => {
      this.unwritten -= 1;
    };
    this.written = done.then(over, over);
    return done;
  }

  close(): void {
    if (this.end.signal.aborted) return;
    this.end.abort(CLOSED);
    this.channel.close();
  }

  /**
   * How many bytes a call moved, once the socket lets it.
   * @param first what to wait for before the first try: other connections have their turn before this one goes on
   */
  private async moved(first: TlsWants | undefined, move: () => number | TlsWants): Promise<number> {
    const { signal } = this.end;
    for (let waits = first; ; ) {
      if (waits !== undefined) await ready(this.channel.socket, waits, signal);
      if (signal.aborted) throw signal.reason;
      const result = move();
      if (typeof result === "string") waits = result;
      else if (result >= 0) return result;
      else throw new NetError(`the connection broke: ${errnoName(-result)}`, "closed", errnoName(-result));
    }
  }
}

/** A connection that is being made. */
interface Attempt {
  /** The current step, which is the failed one after a timeout. */
  kind: NetFailure;
  readonly signal: AbortSignal;
  /** Milliseconds in total, and those left. */
  readonly deadlineMs: number;
  left(): number;
}

async function attempted<T>(
  { deadlineMs, signal }: ConnectOptions,
  kind: NetFailure,
  work: (attempt: Attempt) => Promise<T>,
): Promise<T> {
  const end = new AbortController();
  const deadline = host.elapsed() + deadlineMs;
  const attempt = {
    kind,
    signal: end.signal,
    deadlineMs,
    left: () => Math.max(1, Math.ceil(deadline - host.elapsed())),
  };
  const late = () => end.abort(new NetError(`no connection within ${deadlineMs} ms`, attempt.kind, "ETIMEDOUT"));
  const abort = () => end.abort(new NetError("the connection is no longer wanted", "closed"));
  const timer = setTimeout(late, deadlineMs);
  if (signal?.aborted) abort();
  else signal?.addEventListener("abort", abort, { once: true });
  try {
    return await work(attempt);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  }
}

/** The value of a promise, unless the signal comes first. */
async function unless<T>(signal: AbortSignal, promise: Promise<T>): Promise<T> {
  let abort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

const isAddress = (name: string) => name.includes(":") || /^\d{1,3}(\.\d{1,3}){3}$/.test(name);

/** No addresses, after the time that the other family has. */
const late = () =>
  new Promise<readonly string[]>((resolve) => {
    setTimeout(() => resolve([]), OTHER_FAMILY_MS);
  });

/**
 * The addresses of a name, IPv4 and IPv6 by turns, so that the other family is tried early if one does not work. A name
 * server that does not answer about one family must not cost the other.
 */
async function addressesOf(name: string, { left, signal }: Attempt): Promise<readonly string[]> {
  if (isAddress(name)) return [name];
  const timeoutMs = left();
  const asked = [AF.inet, AF.inet6].map((family) =>
    inChild(() => host.resolve(name, family), { timeoutMs }).catch((): readonly string[] => []),
  );
  const some = asked.map((each) => each.then(({ length }) => (length > 0 ? length : Promise.reject())));
  const rest = Promise.any(some).then(late, () => []);
  const [v4 = [], v6 = []] = await unless(signal, Promise.all(asked.map((each) => Promise.race([each, rest]))));
  const turns = v4.length > v6.length ? v4 : v6;
  const mixed = turns.flatMap((_, at) => [v4[at], v6[at]].flatMap((each) => each ?? []));
  if (mixed.length === 0) throw new NetError(`its host name cannot be resolved: ${name}`, "resolve");
  return mixed;
}

/** The bytes of addresses. What looks like one may be invalid. @throws NetError if none is valid */
function bytesOf(addresses: readonly string[]): readonly [Uint8Array, ...Uint8Array[]] {
  const [first, ...others] = addresses.map(parseAddress).flatMap((bytes) => (bytes ? [Uint8Array.from(bytes)] : []));
  if (first === undefined) throw new NetError(`${quoted(addresses.join(", "))} is not an IP address`, "resolve");
  return [first, ...others];
}

/** A socket connected to one address. @throws SystemError */
async function connected(address: Uint8Array, port: number, signal: AbortSignal): Promise<number> {
  const socket = beginConnection(host, address, port);
  try {
    await ready(socket, "write", signal);
    const failed = new Int32Array(1);
    checked("connect", host.getsockopt(socket, SOL_SOCKET, SO_ERROR, new Uint8Array(failed.buffer)));
    checked("connect", -(failed[0] ?? 0));
    return socket;
  } catch (error) {
    host.close(socket);
    throw error;
  }
}

/** A socket connected to the first address that accepts; the next one is tried while earlier ones do not answer. */
function dialled(addresses: readonly Uint8Array[], port: number, signal: AbortSignal): Promise<number> {
  return new Promise((resolve, reject) => {
    const others = new AbortController();
    let [next, open] = [0, 0];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const finish = (settle: () => void) => {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      others.abort();
      settle();
    };
    const abort = () => finish(() => reject(signal.reason));
    const start = () => {
      clearTimeout(timer);
      const address = addresses[next++];
      if (address === undefined) return;
      open += 1;
      if (next < addresses.length) timer = setTimeout(start, STAGGER_MS);
      connected(address, port, others.signal).then(
        (socket) => {
          if (others.signal.aborted) host.close(socket);
          else finish(() => resolve(socket));
        },
        (error) => {
          open -= 1;
          if (others.signal.aborted) return;
          if (next < addresses.length) start();
          else if (open === 0) finish(() => reject(error));
        },
      );
    };
    signal.addEventListener("abort", abort, { once: true });
    start();
  });
}

function failure(problem: TlsFailure, attempt: Attempt): NetError {
  const code = problem.error < 0 ? errnoName(-problem.error) : undefined;
  return new NetError(reasonOf(problem, attempt.deadlineMs), problem.step, code);
}

async function connectSocket({ host: name, port }: TcpTarget, attempt: Attempt): Promise<number> {
  attempt.kind = "resolve";
  const addresses = bytesOf(await addressesOf(name, attempt)).slice(0, MOST_ADDRESSES);
  attempt.kind = "connect";
  try {
    return await dialled(addresses, port, attempt.signal);
  } catch (error) {
    if (!(error instanceof SystemError)) throw error;
    throw failure({ step: "connect", error: -error.errno, text: "" }, attempt);
  }
}

/** @throws NetError */
export function connectTcp(to: TcpTarget, options: ConnectOptions): Promise<Connection> {
  return attempted(
    options,
    "resolve",
    async (attempt) => new EngineConnection(plainChannel(await connectSocket(to, attempt))),
  );
}

/** Connects to a socket by its path. @throws NetError, with code EAGAIN if too many wait there */
export async function connectUnix(path: string): Promise<Connection> {
  try {
    return new EngineConnection(plainChannel(connectTo(host, path)));
  } catch (error) {
    const code = error instanceof SystemError ? error.code : undefined;
    throw new NetError((error as Error).message, "connect", code, { cause: error });
  }
}

let certificates: { problemOf(chain: readonly Uint8Array[]): string } | undefined;

/** The script is loaded for the first chain that needs it. */
function judge(chain: readonly Uint8Array[]): string {
  certificates ??= host.load("certificates");
  return certificates.problemOf(chain);
}

/** Completes a handshake, or ends the connection. */
async function handshaken(socket: number, connection: TlsConnection, attempt: Attempt): Promise<Connection> {
  attempt.kind = "handshake";
  try {
    for (;;) {
      if (attempt.signal.aborted) throw attempt.signal.reason;
      const result = host.tlsHandshake(connection, judge);
      if (result === undefined) return new EngineConnection(tlsChannel(socket, connection));
      if (typeof result !== "string") throw failure(result, attempt);
      await ready(socket, result, attempt.signal);
    }
  } catch (error) {
    host.tlsEnd(connection);
    throw error;
  }
}

/** Connects and verifies the server. @throws NetError */
export function connectTls(to: TlsTarget, options: ConnectOptions): Promise<Connection> {
  return attempted(options, "resolve", async (attempt) => {
    const socket = await connectSocket(to, attempt);
    if (options.acknowledgeMs !== undefined) limitAcknowledgement(host, socket, options.acknowledgeMs);
    if (options.probeMs !== undefined) probe(host, socket, options.probeMs);
    const made = host.tlsClient(socket, to.host, to.ca);
    if (!("step" in made)) return handshaken(socket, made, attempt);
    host.close(socket);
    throw failure(made, attempt);
  });
}

/**
 * Accepts the connections that wait, some at most.
 * @returns whether one had to be left for lack of a descriptor or memory
 */
function acceptSome(listening: number, taken: (socket: number) => void): boolean {
  for (let count = 0; count < BATCH; count++) {
    const socket = host.accept(listening, ACCEPT_FLAGS);
    if (socket === -Errno.EAGAIN) return false;
    if (socket === -Errno.ECONNABORTED) continue;
    if (socket < 0) return true;
    taken(socket);
  }
  return false;
}

/** Accepts connections until the signal is given. */
async function acceptAll(listening: number, signal: AbortSignal, taken: (socket: number) => void): Promise<void> {
  for (;;) {
    await ready(listening, "read", signal);
    if (!acceptSome(listening, (socket) => (signal.aborted ? host.close(socket) : taken(socket)))) continue;
    // The connection waits; do not retry at once.
    await unless(signal, new Promise<void>((resolve) => void setTimeout(resolve, PAUSE_MS)));
  }
}

async function listenSocket({ host: name, port }: ListenAddress): Promise<number> {
  if (name === undefined) return listenOn(host, port);
  const options = { deadlineMs: LOOKUP_MS };
  const [address] = bytesOf(await attempted(options, "resolve", (attempt) => addressesOf(name, attempt)));
  return listenOn(host, port, address);
}

/** Accepts the connections of a socket. @returns a function that stops this */
function taking(socket: number, taken: (socket: number) => void): () => void {
  const end = new AbortController();
  acceptAll(socket, end.signal, taken).catch((error) => {
    if (!end.signal.aborted) throw error;
  });
  return () => end.abort();
}

/**
 * Holds connections until their clients send something. Any client may open thousands: one that is silent, or resets the
 * connection, costs some microseconds and a descriptor.
 */
function whenBegun(begun: (socket: number) => void) {
  /** Sockets, the oldest first, and what ends each. */
  const silent = new Map<number, () => void>();
  const hold = (socket: number) => {
    const begins = () => {
      clearTimeout(timer);
      silent.delete(socket);
      if (host.receive(socket, received.subarray(0, 1), MSG_PEEK) > 0) begun(socket);
      else host.close(socket);
    };
    const stop = onReadable(socket, begins);
    const end = () => {
      clearTimeout(timer);
      stop();
      silent.delete(socket);
      host.close(socket);
    };
    const timer = setTimeout(end, SILENT_MS);
    silent.set(socket, end);
  };
  return {
    take: (socket: number) => {
      const [oldest] = silent.values();
      if (silent.size >= MOST_SILENT) oldest?.();
      hold(socket);
    },
    close: () => {
      for (const end of silent.values()) end();
    },
  };
}

async function listening(at: ListenAddress, begun: (socket: number) => void): Promise<Listener> {
  const socket = await listenSocket(at);
  // Accepted connections inherit it.
  sendAtOnce(host, socket);
  const bound = new Uint8Array(28);
  host.getsockname(socket, bound);
  const connections = whenBegun(begun);
  const stop = taking(socket, connections.take);
  let isOpen = true;
  const close = () => {
    if (!isOpen) return;
    isOpen = false;
    stop();
    host.close(socket);
    connections.close();
  };
  return { port: (bound[2] ?? 0) * 256 + (bound[3] ?? 0), close };
}

/** @param taken receives each connection once its client has sent something @throws SystemError if the port is in use */
export function listenTcp(at: ListenAddress, taken: (connection: Connection) => void): Promise<Listener> {
  return listening(at, (socket) => taken(new EngineConnection(plainChannel(socket), true)));
}

/** A Unix socket that listens. */
export interface UnixListener {
  close(): void;
}

const ROOT = 0;
const OWNER_ONLY = 0o600;

/**
 * Listens on a new path for this user and root: only they can open the file and connect. @param taken receives each
 * connection @throws Error if the path exists or cannot be created
 */
export async function listenUnix(path: string, taken: (connection: Connection) => void): Promise<UnixListener> {
  const socket = listenPath(host, path, OWNER_ONLY);
  const welcome = [ROOT, peerUid(host, socket)];
  const stop = taking(socket, (connection) => {
    if (welcome.includes(peerUid(host, connection))) taken(new EngineConnection(plainChannel(connection), true));
    else host.close(connection);
  });
  const close = () => {
    stop();
    host.close(socket);
  };
  return { close };
}

/** @throws Error in the TLS library's words */
function identityOf({ cert, key }: TlsPair): TlsIdentity {
  const made = host.tlsServer(cert, key);
  if (typeof made === "string") throw new Error(made);
  return made;
}

/** An accepted TLS connection, whose reads and writes wait for its handshake. */
class Accepted implements Connection {
  private readonly end = new AbortController();
  private readonly connection: Promise<Connection>;

  constructor(socket: number, identity: TlsIdentity) {
    const { signal } = this.end;
    // The server closes it in time.
    const [deadlineMs, left] = [Number.POSITIVE_INFINITY, () => Number.POSITIVE_INFINITY];
    const attempt: Attempt = { kind: "handshake", signal, deadlineMs, left };
    this.connection = handshaken(socket, host.tlsAccept(socket, identity), attempt);
    // A read rejects.
    this.connection.catch(() => undefined);
  }

  async read(): Promise<Uint8Array | undefined> {
    return (await this.connection).read();
  }

  async write(bytes: Uint8Array): Promise<void> {
    await (await this.connection).write(bytes);
  }

  close(): void {
    this.end.abort(CLOSED);
    this.connection.then(
      (connection) => connection.close(),
      () => undefined,
    );
  }
}

/**
 * Listens for TLS 1.2 and 1.3. @param taken receives each connection once its client has sent something, before the
 * handshake @throws Error if the port is in use or TLS refuses the pair
 */
export async function listenTls(
  at: ListenAddress,
  pair: TlsPair,
  taken: (connection: Connection) => void,
): Promise<TlsListener> {
  let identity = identityOf(pair);
  const listener = await listening(at, (socket) => taken(new Accepted(socket, identity)));
  return {
    ...listener,
    use: (next) => {
      identity = identityOf(next);
    },
  };
}
