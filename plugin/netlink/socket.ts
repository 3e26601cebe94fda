/** The socket to netfilter, in the network namespace that the process was in when it was first used. */
import { checked, Errno, SystemError } from "../host/errno";
import type { Host } from "../host/port";

/** Sends one datagram and returns every datagram that the kernel answers at once. @throws SystemError */
export type Netfilter = (request: Uint8Array) => readonly Uint8Array[];

const AF_NETLINK = 16;
const SOCK_RAW = 3;
const SOCK_CLOEXEC = 0x80000;
const NETLINK_NETFILTER = 12;
const MSG_DONTWAIT = 0x40;
const SOL_SOCKET = 1;
const SO_SNDBUF = 7;
const SO_SNDBUFFORCE = 32;
/** What a socket's buffer holds on every kernel without asking. */
const USUAL_ROOM = 65536;
/** No reply of netlink is longer. */
const RECEIVE_SIZE = 65536;

/** A request goes out as one datagram, however long; where the kernel gives no more room, sending says so. */
function makeRoom(host: Host, socket: number, length: number): void {
  if (length < USUAL_ROOM) return;
  const room = new Uint8Array(Int32Array.of(length).buffer);
  const set = (option: number) => host.setsockopt(socket, SOL_SOCKET, option, room);
  // In a user namespace it cannot be forced, but asked for up to net.core.wmem_max.
  if (set(SO_SNDBUFFORCE) < 0) set(SO_SNDBUF);
}

/** What the kernel answered so far; undefined where it has said everything. */
function receive(host: Host, socket: number, buffer: Uint8Array): Uint8Array | undefined {
  const size = host.receive(socket, buffer, MSG_DONTWAIT);
  if (size >= 0) return buffer.slice(0, size);
  if (size === -Errno.EAGAIN) return undefined;
  // Replies were lost, but never the first ones, and those say what failed.
  if (size === -Errno.ENOBUFS) return new Uint8Array(0);
  throw new SystemError("receive from netfilter", -size);
}

/** Opens the socket when it is first used. It is never closed: the process leaves soon. */
export function netfilter(host: Host): Netfilter {
  let socket: number | undefined;
  const buffer = new Uint8Array(RECEIVE_SIZE);
  return (request) => {
    socket ??= checked("open a netfilter socket", host.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER));
    makeRoom(host, socket, request.length);
    checked("send to netfilter", host.send(socket, request, 0));
    const replies: Uint8Array[] = [];
    // The kernel answers within the call that sends: what is not there now never comes.
    for (let reply = receive(host, socket, buffer); reply !== undefined; reply = receive(host, socket, buffer)) {
      replies.push(reply);
    }
    return replies;
  };
}
