/**
 * Frames on the socket: two streams of bytes share it, one for the calls of either side. A frame is the number of its
 * stream, the length of its payload, and the payload.
 */
import { concat } from "../host/bytes";
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
/** The runtime closes the connection upon a longer frame: its reader has a buffer of 4,096 bytes. */
const LONGEST_SENT = 4096;
/** More than the longest message. */
const LONGEST_RECEIVED = 8 * 1024 * 1024;

/** The payload in frames. */
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

/** Takes frames apart, however they arrive. */
export class FrameReader {
  private rest = new Uint8Array(0);

  /** Each whole frame's stream and payload, in order. @throws ProtocolError */
  *read(chunk: Uint8Array): Generator<readonly [stream: Stream, payload: Uint8Array]> {
    const bytes = this.rest.length === 0 ? chunk : concat([this.rest, chunk]);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    let at = 0;
    while (at + HEADER <= bytes.length) {
      const stream = view.getUint32(at);
      const length = view.getUint32(at + 4);
      if (stream !== Stream.plugin && stream !== Stream.runtime) throw new ProtocolError(`a frame of stream ${stream}`);
      if (length > LONGEST_RECEIVED) throw new ProtocolError(`a frame of ${length} bytes`);
      if (at + HEADER + length > bytes.length) break;
      yield [stream, bytes.subarray(at + HEADER, at + HEADER + length)];
      at += HEADER + length;
    }
    this.rest = bytes.slice(at);
  }
}
