/**
 * The encoding of netfilter's netlink messages. Lengths and headers are in the machine's byte order, which is little
 * endian on x64 and arm64; netfilter's "be" values are in network order.
 */

import { ascii, concat } from "../host/bytes";

const NLA_F_NESTED = 0x8000;
const NLA_TYPE_MASK = 0x3fff;
const ATTRIBUTE_HEADER = 4;
const MESSAGE_HEADER = 16;
const FAMILY_HEADER = 4;

const aligned = (length: number) => (length + 3) & ~3;

const viewOf = (bytes: Uint8Array) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** One attribute: a type and a payload, padded to four bytes. */
export function attribute(type: number, payload: Uint8Array): Uint8Array {
  const length = ATTRIBUTE_HEADER + payload.length;
  const made = new Uint8Array(aligned(length));
  made[0] = length;
  made[1] = length >> 8;
  made[2] = type;
  made[3] = type >> 8;
  made.set(payload, ATTRIBUTE_HEADER);
  return made;
}

/** A nested attribute. */
export function nested(type: number, ...members: readonly Uint8Array[]): Uint8Array {
  return attribute(type | NLA_F_NESTED, concat(members));
}

/** A text with its terminating zero. */
export function text(type: number, value: string): Uint8Array {
  return attribute(type, ascii(`${value}\0`));
}

/** A number in network order, which nftables always uses. */
export function number32(type: number, value: number): Uint8Array {
  return attribute(type, Uint8Array.of(value >> 24, value >> 16, value >> 8, value));
}

interface Message {
  readonly type: number;
  readonly flags: number;
  readonly sequence: number;
  /** The protocol family of the object, `NFPROTO_*`. */
  readonly family: number;
  readonly resource?: number;
  readonly attributes: readonly Uint8Array[];
}

/** A whole message with both of its headers. */
export function message(parts: Message): Uint8Array {
  const header = new Uint8Array(MESSAGE_HEADER + FAMILY_HEADER);
  const size = parts.attributes.reduce((sum, { length }) => sum + length, header.length);
  const view = viewOf(header);
  view.setUint32(0, size, true);
  view.setUint16(4, parts.type, true);
  view.setUint16(6, parts.flags, true);
  view.setUint32(8, parts.sequence, true);
  view.setUint8(16, parts.family);
  view.setUint16(18, parts.resource ?? 0);
  return concat([header, ...parts.attributes]);
}

/** A message from the kernel: the payload begins after the netlink header. */
export interface Received {
  readonly type: number;
  readonly flags: number;
  readonly sequence: number;
  readonly payload: Uint8Array;
}

/** The messages of one datagram. */
export function* messages(datagram: Uint8Array): Generator<Received> {
  const view = viewOf(datagram);
  for (let at = 0; at + MESSAGE_HEADER <= datagram.length; ) {
    const length = view.getUint32(at, true);
    if (length < MESSAGE_HEADER || at + length > datagram.length) return;
    yield {
      type: view.getUint16(at + 4, true),
      flags: view.getUint16(at + 6, true),
      sequence: view.getUint32(at + 8, true),
      payload: datagram.subarray(at + MESSAGE_HEADER, at + length),
    };
    at += aligned(length);
  }
}

/** The attributes of a payload by their type. */
export function attributes(payload: Uint8Array): ReadonlyMap<number, Uint8Array> {
  return new Map(attributeList(payload));
}

/** The attributes of a payload in order, since lists repeat one type. */
export function* attributeList(payload: Uint8Array): Generator<readonly [number, Uint8Array]> {
  const view = viewOf(payload);
  for (let at = 0; at + ATTRIBUTE_HEADER <= payload.length; ) {
    const length = view.getUint16(at, true);
    if (length < ATTRIBUTE_HEADER || at + length > payload.length) return;
    yield [view.getUint16(at + 2, true) & NLA_TYPE_MASK, payload.subarray(at + ATTRIBUTE_HEADER, at + length)];
    at += aligned(length);
  }
}

/** A number in network order from the kernel; undefined if absent. */
export function readNumber32(bytes: Uint8Array | undefined): number | undefined {
  return bytes === undefined || bytes.length < 4 ? undefined : viewOf(bytes).getInt32(0);
}

/** A number in the machine's order. */
export function readNative32(bytes: Uint8Array): number {
  return bytes.length < 4 ? 0 : viewOf(bytes).getInt32(0, true);
}
