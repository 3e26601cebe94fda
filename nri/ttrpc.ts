/** ttrpc, the calls within a stream: a header, followed by a request or a response as a protocol buffer. */
import { concat } from "../host/bytes";
import { Gathered } from "../system/http/message";
import { bytesField, Fields, numberField, ProtocolError, type Texts } from "./protobuf";

const HEADER = 10;
/** The longest message of ttrpc. */
const LONGEST = 4 * 1024 * 1024;
const TYPE = { request: 1, response: 2 } as const;

/** The gRPC codes sent here. */
export const Code = { unknown: 2, unimplemented: 12 } as const;

/** Maximum length of an error in an Event of the kubelet, in characters. */
const LONGEST_ERROR = 1000;

export interface Request {
  readonly kind: "request";
  readonly id: number;
  /** `service/method`. */
  readonly method: string;
  readonly payload: Uint8Array;
}

export interface Response {
  readonly kind: "response";
  readonly id: number;
  /** The other side's error, if it refused. */
  readonly error?: string | undefined;
}

const Field = {
  request: { service: 1, method: 2, payload: 3 },
  response: { status: 1, payload: 2 },
  status: { code: 1, message: 2 },
} as const;

function message(id: number, type: number, parts: readonly Uint8Array[]): Uint8Array {
  const data = concat(parts);
  const header = new DataView(new ArrayBuffer(HEADER));
  header.setUint32(0, data.length);
  header.setUint32(4, id);
  header.setUint8(8, type);
  return concat([new Uint8Array(header.buffer), data]);
}

/** A call. @param id odd, and unique in its stream */
export function request(id: number, method: string, payload: Uint8Array, { encode }: Texts): Uint8Array {
  const [service = "", name = ""] = method.split("/");
  const { request: field } = Field;
  return message(id, TYPE.request, [
    bytesField(field.service, encode(service)),
    bytesField(field.method, encode(name)),
    bytesField(field.payload, payload),
  ]);
}

/** The answer to a call. */
export function response(id: number, payload: Uint8Array): Uint8Array {
  return message(id, TYPE.response, [bytesField(Field.response.payload, payload)]);
}

/** The answer to a failed call; a long text is truncated. */
export function failure(id: number, code: number, text: string, { encode }: Texts): Uint8Array {
  const cut = text.slice(0, LONGEST_ERROR).replace(/[\ud800-\udbff]$/, "");
  const status = concat([numberField(Field.status.code, code), bytesField(Field.status.message, encode(cut))]);
  return message(id, TYPE.response, [bytesField(Field.response.status, status)]);
}

function requestOf(id: number, read: Fields): Request {
  let [service, method] = ["", ""];
  let payload: Uint8Array = new Uint8Array(0);
  while (read.next()) {
    if (read.field === Field.request.service) service = read.text();
    else if (read.field === Field.request.method) method = read.text();
    else if (read.field === Field.request.payload) payload = read.data();
  }
  return { kind: "request", id, method: `${service}/${method}`, payload };
}

function responseOf(id: number, read: Fields): Response {
  let [code, text] = [0, ""];
  while (read.next()) {
    if (read.field !== Field.response.status) continue;
    for (const status = read.fields(); status.next(); ) {
      if (status.field === Field.status.code) code = status.number;
      else if (status.field === Field.status.message) text = status.text();
    }
  }
  return { kind: "response", id, error: code === 0 ? undefined : text };
}

function decoded(id: number, type: number, data: Uint8Array, texts: Texts): Request | Response {
  const read = new Fields(data, texts);
  if (type === TYPE.request) return requestOf(id, read);
  if (type !== TYPE.response) throw new ProtocolError(`a message of type ${type}`);
  return responseOf(id, read);
}

/** Parses the messages of a stream from chunks of any size. */
export class MessageReader {
  private readonly received = new Gathered();

  constructor(private readonly texts: Texts) {}

  /** Each whole message, in order; it is valid until the next read. @throws ProtocolError */
  *read(chunk: Uint8Array): Generator<Request | Response> {
    this.received.add(chunk);
    while (this.received.size >= HEADER) {
      const { buffer, byteOffset } = this.received.bytes;
      const header = new DataView(buffer, byteOffset, HEADER);
      const [length, id, type] = [header.getUint32(0), header.getUint32(4), header.getUint8(8)];
      if (length > LONGEST) throw new ProtocolError(`a message of ${length} bytes`);
      if (this.received.size < HEADER + length) return;
      yield decoded(id, type, this.received.take(HEADER + length).subarray(HEADER), this.texts);
    }
  }
}
