import { Errno } from "./errno";
import type { Host } from "./port";

/** Flags of poll(2). */
export const Poll = { input: 1, output: 4 } as const;

/** Bytes of a `struct pollfd`: the descriptor, the events that are waited for, and those that happened. */
const SIZE = 8;

/** Waits until one of the descriptors has something to read, or was closed by its other side. Those that do. */
export function readable(host: Host, descriptors: readonly number[], milliseconds: number): readonly number[] {
  const polled = new DataView(new ArrayBuffer(descriptors.length * SIZE));
  for (const [index, descriptor] of descriptors.entries()) {
    polled.setInt32(index * SIZE, descriptor, true);
    polled.setInt16(index * SIZE + 4, Poll.input, true);
  }
  if (host.pollAll(new Uint8Array(polled.buffer), milliseconds) <= 0) return [];
  return descriptors.filter((_, index) => polled.getInt16(index * SIZE + 6, true) !== 0);
}

const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;

/** Sends all bytes. @returns whether the other side took them in time */
export function sendAll(host: Host, socket: number, bytes: Uint8Array, milliseconds: number): boolean {
  const end = host.elapsed() + milliseconds;
  for (let at = 0; at < bytes.length; ) {
    const sent = host.send(socket, bytes.subarray(at), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) at += sent;
    else if (sent !== -Errno.EAGAIN || host.elapsed() >= end) return false;
    else host.poll(socket, Poll.output, end - host.elapsed());
  }
  return true;
}

/** Receives what there is: bytes; nothing for now; or the other side has closed the connection, or broken it. */
export function receiveSome(host: Host, socket: number, into: Uint8Array): Uint8Array | "nothing" | "closed" {
  const size = host.receive(socket, into, MSG_DONTWAIT);
  if (size === -Errno.EAGAIN) return "nothing";
  return size <= 0 ? "closed" : into.subarray(0, size);
}
