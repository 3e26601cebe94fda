/**
 * Frames on the socket, which two byte streams share, one for the calls of each side. A frame consists of its stream's
 * number, the payload's length, and the payload.
 */
import { concat } from "../host/bytes";
import { Gathered } from "../system/http/message";
import { ProtocolError } from "./protobuf";

/** The streams. */
export const Stream = {
  /** The runtime calls this plugin. */
  plugin: 1,
  /** This plugin calls the runtime. */
  runtime: 2,
} as const;
export type Stream = (typeof Stream)[keyof typeof Stream];

const HEADER = 8;
/** The runtime closes the connection after a longer frame, because its reader has a buffer of 4,096 bytes. */
const LONGEST_SENT = 4096;
/** More than the longest message. */
const LONGEST_RECEIVED = 8 * 1024 * 1024;

/** Splits a payload into frames. */
export function frames(stream: Stream, payload: Uint8Array): Uint8Array {
  const made: Uint8Array[] = [];
  for (let at = 0; at < payload.length; at += LONGEST_SENT) {
    const part = payload.subarray(at, at + LONGEST_SENT);
    const header = new DataView(new ArrayBuffer(HEADER));
    header.setUint32(0, stream);
    header.setUint32(4, part.length);
    made.push(new Uint8Array(header.buffer), part);
  }
  return concat(made);
}

/** Parses frames from chunks of any size. */
export class FrameReader {
  private readonly received = new Gathered();

  /** Each whole frame's stream and payload, in order; a payload is valid until the next read. @throws ProtocolError */
  *read(chunk: Uint8Array): Generator<readonly [stream: Stream, payload: Uint8Array]> {
    this.received.add(chunk);
    while (this.received.size >= HEADER) {
      const { buffer, byteOffset } = this.received.bytes;
      const header = new DataView(buffer, byteOffset, HEADER);
      const stream = header.getUint32(0);
      const length = header.getUint32(4);
      if (stream !== Stream.plugin && stream !== Stream.runtime) throw new ProtocolError(`a frame of stream ${stream}`);
      if (length > LONGEST_RECEIVED) throw new ProtocolError(`a frame of ${length} bytes`);
      if (this.received.size < HEADER + length) return;
      yield [stream, this.received.take(HEADER + length).subarray(HEADER)];
    }
  }
}
