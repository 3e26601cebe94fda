import { ptr } from "bun:ffi";
import { Open } from "../files/port";
import { checked, cString, errno, libc } from "../libc";
import { Errno, SystemError } from "../system-error";
import type { Kernel } from "./port";

const AF_NETLINK = 16;
const SOCK_RAW = 3;
const SOCK_CLOEXEC = 0x80000;
const NETLINK_NETFILTER = 12;
const CLONE_NEWNET = 0x40000000;
const MSG_DONTWAIT = 0x40;
const SOL_SOCKET = 1;
const SO_SNDBUF = 7;
const SO_SNDBUFFORCE = 32;
/** What a socket's buffer holds on every kernel without asking. */
const USUAL_ROOM = 65536;
const EMPTY = new Uint8Array(0);
/** No reply of netlink is longer. */
const RECEIVE_SIZE = 65536;

/** The kernel this process runs on, reached through libc. The socket is never closed: the process leaves soon. */
class LinuxKernel implements Kernel {
  private socket: number | undefined;
  private readonly buffer = new Uint8Array(RECEIVE_SIZE);

  enterNamespace(path: string): void {
    const fd = checked(`open ${path}`, libc.open(ptr(cString(path)), Open.readOnly | Open.closeOnExec, 0));
    checked(`enter network namespace ${path}`, libc.setns(fd, CLONE_NEWNET));
  }

  exchange(request: Uint8Array): readonly Uint8Array[] {
    this.socket ??= checked(
      "open a netfilter socket",
      libc.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER),
    );
    this.makeRoom(this.socket, request.length);
    checked("send to netfilter", libc.send(this.socket, ptr(request), request.length, 0));
    const replies: Uint8Array[] = [];
    // The kernel answers within the call that sends: what is not there now never comes.
    for (let reply = this.receive(this.socket); reply !== undefined; reply = this.receive(this.socket)) {
      replies.push(reply);
    }
    return replies;
  }

  /** A request goes out as one datagram, however long; where the kernel gives no more room, sending says so. */
  private makeRoom(socket: number, length: number): void {
    if (length < USUAL_ROOM) return;
    const room = Int32Array.of(length);
    const set = (option: number) => libc.setsockopt(socket, SOL_SOCKET, option, ptr(room), room.byteLength);
    // In a user namespace it cannot be forced, but asked for up to net.core.wmem_max.
    if (set(SO_SNDBUFFORCE) < 0) set(SO_SNDBUF);
  }

  private receive(socket: number): Uint8Array | undefined {
    const size = Number(libc.recv(socket, ptr(this.buffer), this.buffer.length, MSG_DONTWAIT));
    if (size >= 0) return this.buffer.slice(0, size);
    const cause = errno();
    if (cause === Errno.EAGAIN) return undefined;
    // Replies were lost, but never the first ones, and those say what failed.
    if (cause === Errno.ENOBUFS) return EMPTY;
    throw new SystemError("receive from netfilter", cause);
  }
}

export const linuxKernel: Kernel = new LinuxKernel();
