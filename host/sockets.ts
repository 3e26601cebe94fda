/** Sockets that wait for connections, and that connect on the same machine. */
import { checked, Errno, SystemError } from "./errno";
import type { Host } from "./port";

const AF = { unix: 1, inet: 2, inet6: 10 } as const;
const SOCK_STREAM = 1;
const SOCK_CLOEXEC = 0x80000;
const SOCK_NONBLOCK = 0x800;
const SOL_SOCKET = 1;
const SO_REUSEADDR = 2;
const IPPROTO_IPV6 = 41;
const IPV6_V6ONLY = 26;
/** Connections that wait to be taken: whoever comes beyond them tries again after a second. */
const BACKLOG = 4096;
/** Bytes of `sun_path`, one of them for the zero at its end. */
const LONGEST_PATH = 107;

const OFF = new Uint8Array(Int32Array.of(0).buffer);
const ON = new Uint8Array(Int32Array.of(1).buffer);

/** Runs work on a new socket, which is closed where it throws. No call on it waits. */
function opened(host: Host, family: number, work: (socket: number) => void): number {
  const socket = checked("open a socket", host.socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  try {
    work(socket);
    return socket;
  } catch (error) {
    host.close(socket);
    throw error;
  }
}

/** Connects to a socket's path. @throws SystemError, with EAGAIN where too many wait there */
export function connectUnix(host: Host, path: string): number {
  const name = host.encode(path);
  if (name.length > LONGEST_PATH) throw new Error(`the path of a socket has at most ${LONGEST_PATH} bytes: ${path}`);
  const address = new Uint8Array(name.length + 3);
  address[0] = AF.unix;
  address.set(name, 2);
  return opened(host, AF.unix, (socket) => checked(`connect to ${path}`, host.connect(socket, address)));
}

/** Where to listen on every address: the kernel's `struct sockaddr_in6`, or `sockaddr_in`. */
function everyAddress(family: number, port: number): Uint8Array {
  const address = new Uint8Array(family === AF.inet6 ? 28 : 16);
  address[0] = family;
  address[2] = port >> 8;
  address[3] = port;
  return address;
}

function listenOn(host: Host, family: number, port: number): number {
  return opened(host, family, (socket) => {
    host.setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, ON);
    if (family === AF.inet6) checked("set a socket up", host.setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, OFF));
    checked(`listen on port ${port}`, host.bind(socket, everyAddress(family, port)));
    checked(`listen on port ${port}`, host.listen(socket, BACKLOG));
  });
}

/** Listens on a port of every address; of IPv4 alone where there is no IPv6. @throws SystemError */
export function listenTcp(host: Host, port: number): number {
  try {
    return listenOn(host, AF.inet6, port);
  } catch (error) {
    const isMissing = error instanceof SystemError && MISSING.includes(error.errno);
    if (!isMissing) throw error;
    return listenOn(host, AF.inet, port);
  }
}

/** Errors of a kernel, or a namespace, without IPv6. */
const MISSING: readonly number[] = [Errno.EAFNOSUPPORT, Errno.EADDRNOTAVAIL];

/** Takes a connection that waits; undefined where none does any more. */
export function acceptConnection(host: Host, socket: number): number | undefined {
  const connection = host.accept(socket, SOCK_CLOEXEC | SOCK_NONBLOCK);
  return connection < 0 ? undefined : connection;
}
