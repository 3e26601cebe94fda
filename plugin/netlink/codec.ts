/**
 * The encoding of netfilter's netlink messages. Lengths and headers are in the machine's byte order, which is little
 * endian on x64 and arm64; what netfilter calls "be" is in network order.
 */

const NLA_F_NESTED = 0x8000;
const NLA_TYPE_MASK = 0x3fff;
const ATTRIBUTE_HEADER = 4;
const MESSAGE_HEADER = 16;
const FAMILY_HEADER = 4;

const aligned = (length: number) => (length + 3) & ~3;

/** One attribute: a type and a payload, padded to four bytes. */
export function attribute(type: number, payload: Uint8Array): Buffer {
  const made = Buffer.alloc(aligned(ATTRIBUTE_HEADER + payload.length));
  made.writeUInt16LE(ATTRIBUTE_HEADER + payload.length, 0);
  made.writeUInt16LE(type, 2);
  made.set(payload, ATTRIBUTE_HEADER);
  return made;
}

/** An attribute made of attributes. */
export function nested(type: number, ...members: readonly Uint8Array[]): Buffer {
  return attribute(type | NLA_F_NESTED, Buffer.concat(members));
}

/** A text with its terminating zero. */
export function text(type: number, value: string): Buffer {
  return attribute(type, Buffer.from(`${value}\0`));
}

/** A number in network order, as every number of nftables is. */
export function number32(type: number, value: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeInt32BE(value | 0);
  return attribute(type, payload);
}

export interface Message {
  readonly type: number;
  readonly flags: number;
  readonly sequence: number;
  /** The protocol family of the object, `NFPROTO_*`. */
  readonly family: number;
  readonly resource?: number;
  readonly attributes: readonly Uint8Array[];
}

/** A whole message with both of its headers. */
export function message(parts: Message): Buffer {
  const body = Buffer.concat(parts.attributes);
  const header = Buffer.alloc(MESSAGE_HEADER + FAMILY_HEADER);
  header.writeUInt32LE(header.length + body.length, 0);
  header.writeUInt16LE(parts.type, 4);
  header.writeUInt16LE(parts.flags, 6);
  header.writeUInt32LE(parts.sequence, 8);
  header.writeUInt8(parts.family, 16);
  header.writeUInt16BE(parts.resource ?? 0, 18);
  return Buffer.concat([header, body]);
}

/** A message as the kernel sent it: the payload begins after the netlink header. */
export interface Received {
  readonly type: number;
  readonly sequence: number;
  readonly payload: Buffer;
}

/** The messages of one datagram. */
export function* messages(datagram: Uint8Array): Generator<Received> {
  const buffer = Buffer.from(datagram.buffer, datagram.byteOffset, datagram.byteLength);
  for (let at = 0; at + MESSAGE_HEADER <= buffer.length; ) {
    const length = buffer.readUInt32LE(at);
    if (length < MESSAGE_HEADER || at + length > buffer.length) return;
    yield {
      type: buffer.readUInt16LE(at + 4),
      sequence: buffer.readUInt32LE(at + 8),
      payload: buffer.subarray(at + MESSAGE_HEADER, at + length),
    };
    at += aligned(length);
  }
}

/** The attributes of a payload by their type. */
export function attributes(payload: Buffer): ReadonlyMap<number, Buffer> {
  return new Map(attributeList(payload));
}

/** The attributes of a payload in order: lists repeat one type. */
export function* attributeList(payload: Buffer): Generator<readonly [number, Buffer]> {
  for (let at = 0; at + ATTRIBUTE_HEADER <= payload.length; ) {
    const length = payload.readUInt16LE(at);
    if (length < ATTRIBUTE_HEADER || at + length > payload.length) return;
    yield [payload.readUInt16LE(at + 2) & NLA_TYPE_MASK, payload.subarray(at + ATTRIBUTE_HEADER, at + length)];
    at += aligned(length);
  }
}
