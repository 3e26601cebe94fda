/** Listening sockets, and connections on the same machine. */
import { checked, Errno, SystemError } from "./errno";
import type { Host, LastingHost } from "./port";

export const AF = { unix: 1, inet: 2, inet6: 10 } as const;
const SOCK_STREAM = 1;
const SOCK_CLOEXEC = 0x80000;
const SOCK_NONBLOCK = 0x800;
const SOL_SOCKET = 1;
const SO_REUSEADDR = 2;
const SO_KEEPALIVE = 9;
const SO_PEERCRED = 17;
const IPPROTO_TCP = 6;
const TCP_NODELAY = 1;
const TCP_KEEPIDLE = 4;
const TCP_KEEPINTVL = 5;
const TCP_USER_TIMEOUT = 18;
const EINPROGRESS = 115;
const IPPROTO_IPV6 = 41;
const IPV6_V6ONLY = 26;
/** Length of the accept queue; further clients of a port try again after a second, those of a path get EAGAIN. */
const BACKLOG = 4096;
/** Represents an unknown user id. */
const NO_UID = 2 ** 32 - 1;
/** Bytes of `sun_path`, one of them for the zero at its end. */
const LONGEST_PATH = 107;

const OFF = new Uint8Array(Int32Array.of(0).buffer);
const ON = new Uint8Array(Int32Array.of(1).buffer);

/** Runs a function on a new non-blocking socket, which is closed after an error. */
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

/** A path as the kernel's `struct sockaddr_un`. */
function unixName(host: Host, path: string): Uint8Array {
  const name = host.encode(path);
  if (name.length > LONGEST_PATH) throw new Error(`the path of a socket has at most ${LONGEST_PATH} bytes: ${path}`);
  const address = new Uint8Array(name.length + 3);
  address[0] = AF.unix;
  address.set(name, 2);
  return address;
}

/** Connects to a socket's path. @throws SystemError, with EAGAIN if too many wait there */
export function connectUnix(host: Host, path: string): number {
  const address = unixName(host, path);
  return opened(host, AF.unix, (socket) => checked(`connect to ${path}`, host.connect(socket, address)));
}

/** Listens on a new path. @param mode of the socket's file, from the beginning @throws SystemError */
export function listenUnix(host: LastingHost, path: string, mode: number): number {
  const address = unixName(host, path);
  return opened(host, AF.unix, (socket) => {
    // The file gets the socket's mode at bind.
    checked(`set the mode of ${path}`, host.fchmod(socket, mode));
    checked(`listen on ${path}`, host.bind(socket, address));
    checked(`listen on ${path}`, host.listen(socket, BACKLOG));
  });
}

/** The user id of the process at the other end of a Unix connection; of a socket that listens, the process's own. */
export function peerUid(host: LastingHost, socket: number): number {
  /** The kernel's `struct ucred`: process, user and group. */
  const credentials = new Uint32Array(3);
  checked("ask who connects", host.getsockopt(socket, SOL_SOCKET, SO_PEERCRED, new Uint8Array(credentials.buffer)));
  return credentials[1] ?? NO_UID;
}

const EVERY_ADDRESS = new Uint8Array(16);
const EVERY_IPV4_ADDRESS = new Uint8Array(4);
const MAPPED = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff);

/** A port of an address of 4 or 16 bytes as the kernel's `struct sockaddr_in6` or `sockaddr_in`. */
function nameOf(address: Uint8Array, port: number): Uint8Array {
  const isV6 = address.length === EVERY_ADDRESS.length;
  const name = new Uint8Array(isV6 ? 28 : 16);
  name[0] = isV6 ? AF.inet6 : AF.inet;
  name[2] = port >> 8;
  name[3] = port;
  name.set(address, isV6 ? 8 : 4);
  return name;
}

/**
 * Begins a connection, which is complete once the socket is writable and has no SO_ERROR. An IPv4-mapped address is the
 * IPv4 address. @throws SystemError
 */
export function beginConnection(host: Host, address: Uint8Array, port: number): number {
  const isMapped = address.length > MAPPED.length && MAPPED.every((byte, at) => address[at] === byte);
  const name = nameOf(isMapped ? address.subarray(MAPPED.length) : address, port);
  return opened(host, name[0] ?? 0, (socket) => {
    sendAtOnce(host, socket);
    const result = host.connect(socket, name);
    if (result !== -EINPROGRESS) checked("connect", result);
  });
}

/** Disables Nagle's algorithm. */
export function sendAtOnce(host: Host, socket: number): void {
  host.setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, ON);
}

/** Ends a connection whose other end does not acknowledge sent data within a number of milliseconds. */
export function limitAcknowledgement(host: Host, socket: number, milliseconds: number): void {
  host.setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, new Uint8Array(Int32Array.of(milliseconds).buffer));
}

/**
 * Has the kernel ask the other end of a connection whether it is there, after so many milliseconds without a word and
 * then every second: what is not acknowledged ends the connection.
 */
export function probe(host: Host, socket: number, milliseconds: number): void {
  const seconds = (count: number) => new Uint8Array(Int32Array.of(count).buffer);
  host.setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, seconds(Math.max(1, Math.round(milliseconds / 1000))));
  host.setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, seconds(1));
  host.setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, ON);
}

function listenOn(host: Host, address: Uint8Array, port: number): number {
  const name = nameOf(address, port);
  const isEvery = address === EVERY_ADDRESS;
  return opened(host, name[0] ?? 0, (socket) => {
    host.setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, ON);
    if (isEvery) checked("set a socket up", host.setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, OFF));
    checked(`listen on port ${port}`, host.bind(socket, name));
    checked(`listen on port ${port}`, host.listen(socket, BACKLOG));
  });
}

/**
 * Listens on a port. @param address 4 or 16 bytes. @default every address, only IPv4 without IPv6 @throws SystemError
 */
export function listenTcp(host: Host, port: number, address?: Uint8Array): number {
  if (address !== undefined) return listenOn(host, address, port);
  try {
    return listenOn(host, EVERY_ADDRESS, port);
  } catch (error) {
    const isMissing = error instanceof SystemError && MISSING.includes(error.errno);
    if (!isMissing) throw error;
    return listenOn(host, EVERY_IPV4_ADDRESS, port);
  }
}

/** Errors of a kernel, or a namespace, without IPv6. */
const MISSING: readonly number[] = [Errno.EAFNOSUPPORT, Errno.EADDRNOTAVAIL];
