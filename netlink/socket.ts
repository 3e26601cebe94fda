/** The netfilter socket, in the network namespace in which it was opened. */
import { checked, Errno, SystemError } from "../host/errno";
import type { Host } from "../host/port";

/** Sends one datagram and returns all immediate answers of the kernel. @throws SystemError, ListTooLong */
export type Netfilter = (request: Uint8Array) => readonly Uint8Array[];

const AF_NETLINK = 16;
const SOCK_RAW = 3;
const SOCK_CLOEXEC = 0x80000;
const NETLINK_NETFILTER = 12;
const MSG_DONTWAIT = 0x40;
const SOL_SOCKET = 1;
const SO_SNDBUF = 7;
const SO_SNDBUFFORCE = 32;
/** Bytes that a socket's buffer holds by default on every kernel. */
const USUAL_ROOM = 65536;
/** The longest reply of netlink. */
const RECEIVE_SIZE = 65536;
/**
 * Maximum bytes that one socket receives: twice the need of the longest lists. A container with NET_ADMIN could make
 * the kernel list anything.
 */
const MAX_RECEIVED = 4 * 1024 * 1024;

/** The kernel's list is longer than any list of ADD. The message contains the limit: "more than …". */
export class ListTooLong extends Error {
  override readonly name = "ListTooLong";
}

/** A request is one datagram of any length. Sending fails if the kernel has no room for it. */
function makeRoom(host: Host, socket: number, length: number): void {
  if (length < USUAL_ROOM) return;
  const room = new Uint8Array(Int32Array.of(length).buffer);
  const set = (option: number) => host.setsockopt(socket, SOL_SOCKET, option, room);
  // In a user namespace the size cannot be forced and is limited to net.core.wmem_max.
  if (set(SO_SNDBUFFORCE) < 0) set(SO_SNDBUF);
}

/** The kernel's next datagram; undefined after the last one. */
function receive(host: Host, socket: number, buffer: Uint8Array): Uint8Array | undefined {
  const size = host.receive(socket, buffer, MSG_DONTWAIT);
  if (size >= 0) return buffer.slice(0, size);
  if (size === -Errno.EAGAIN) return undefined;
  // Replies were lost, but not the first ones, which contain the failure.
  if (size === -Errno.ENOBUFS) return new Uint8Array(0);
  throw new SystemError("receive from netfilter", -size);
}

/** A socket that stays in the namespace in which it was opened. */
export interface NetfilterSocket {
  readonly exchange: Netfilter;
  close(): void;
}

/** Opens a socket in the current namespace. @throws SystemError */
export function openNetfilter(host: Host): NetfilterSocket {
  const socket = host.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
  checked("open a netfilter socket", socket);
  const buffer = new Uint8Array(RECEIVE_SIZE);
  let received = 0;
  return {
    exchange: (request) => {
      makeRoom(host, socket, request.length);
      checked("send to netfilter", host.send(socket, request, 0));
      const replies: Uint8Array[] = [];
      // The kernel answers during the send call, not later.
      for (let reply = receive(host, socket, buffer); reply !== undefined; reply = receive(host, socket, buffer)) {
        replies.push(reply);
        received += reply.length;
        if (received > MAX_RECEIVED) throw new ListTooLong(`more than ${MAX_RECEIVED} bytes`);
      }
      return replies;
    },
    close: () => void host.close(socket),
  };
}

/** Opens the socket at its first use. It is never closed, since the process exits soon. */
export function netfilter(host: Host): Netfilter {
  let socket: NetfilterSocket | undefined;
  return (request) => {
    socket ??= openNetfilter(host);
    return socket.exchange(request);
  };
}
