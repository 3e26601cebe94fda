/**
 * HTTP/1.1 messages as they arrive: heads, and bodies of known length, in chunks, or up to the end of the connection.
 * For the synchronous requests of the plugin, and for client and server. It uses no global of any runtime.
 */

/** Bytes to text, UTF-8. */
export type Decode = (bytes: Uint8Array) => string;

/** A malformed message. `status` is the server's answer. */
export class MessageError extends Error {
  override readonly name = "MessageError";
  constructor(
    message: string,
    readonly status: 400 | 413 | 431 = 400,
  ) {
    super(message);
  }
}

/** The framing of a body. */
export type Extent =
  | { readonly kind: "length"; readonly length: number }
  | { readonly kind: "chunked" | "until close" };

/** Header fields by lower-case name; the values of repeated fields are joined by `, `. */
export type Headers = ReadonlyMap<string, string>;

/** The first line of a message and its header fields. */
export interface Head {
  readonly first: string;
  readonly headers: Headers;
}

const CR = 13;
const LF = 10;
const HEAD_END = Uint8Array.of(CR, LF, CR, LF);
const LINE_END = Uint8Array.of(CR, LF);
const NONE = new Uint8Array(0);
/** The line before a chunk: its size, and extensions, which are ignored. */
const MAX_CHUNK_LINE = 1024;
const FIELD_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const STATUS_LINE = /^HTTP\/1\.[01] (\d{3})/;
/** More than any pod needs: the API server's limit for an object is 3 MiB. */
export const MAX_BODY = 8 * 1024 * 1024;
const MAX_HEAD = 64 * 1024;

/** A growing buffer, in which small pieces are as cheap as large ones. */
export class Gathered {
  private buffer = NONE;
  private start = 0;
  private end = 0;

  get size(): number {
    return this.end - this.start;
  }

  /** A view, valid until the next change. */
  get bytes(): Uint8Array {
    return this.buffer.subarray(this.start, this.end);
  }

  add(bytes: Uint8Array): void {
    if (this.end + bytes.length > this.buffer.length) this.makeRoom(bytes.length);
    this.buffer.set(bytes, this.end);
    this.end += bytes.length;
  }

  /** Removes the first bytes. @returns a view of them, valid until the next {@link add} */
  take(count = this.size): Uint8Array {
    const taken = this.buffer.subarray(this.start, this.start + count);
    this.start += count;
    if (this.start < this.end) return taken;
    this.start = 0;
    this.end = 0;
    // A large buffer is not kept for small messages.
    if (this.buffer.length > MAX_HEAD) this.buffer = NONE;
    return taken;
  }

  private makeRoom(more: number): void {
    const { bytes, size } = this;
    const isRoomy = size + more <= this.buffer.length && size <= this.buffer.length / 2;
    const buffer = isRoomy ? this.buffer : new Uint8Array(Math.max(size + more, Math.min(size * 2, size + MAX_BODY)));
    buffer.set(bytes);
    this.buffer = buffer;
    this.start = 0;
    this.end = size;
  }
}

/** The index of a sequence that begins with CR, or -1. */
function find(bytes: Uint8Array, wanted: Uint8Array, from: number): number {
  for (let at = bytes.indexOf(CR, from); at >= 0; at = bytes.indexOf(CR, at + 1)) {
    let same = 1;
    while (same < wanted.length && bytes[at + same] === wanted[same]) same++;
    if (same === wanted.length) return at;
  }
  return -1;
}

function headersOf(lines: readonly string[]): Headers {
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(0, colon)).toLowerCase();
    // Also refuses a continued line and a space before the colon, which recipients read differently.
    if (!FIELD_NAME.test(name)) throw new MessageError(`sent a malformed header ${JSON.stringify(name.slice(0, 80))}`);
    const value = line.slice(colon + 1).trim();
    const former = headers.get(name);
    headers.set(name, former === undefined || former === value ? value : `${former}, ${value}`);
  }
  return headers;
}

/** The framing of a body; undefined if the header has none. @throws MessageError */
export function extentOf(headers: Headers): Extent | undefined {
  const coding = headers.get("transfer-encoding");
  const length = headers.get("content-length");
  if (coding !== undefined) {
    if (coding.toLowerCase() !== "chunked")
      throw new MessageError(`sent Transfer-Encoding ${JSON.stringify(coding.slice(0, 80))}`);
    if (length !== undefined) throw new MessageError("sent Transfer-Encoding and Content-Length");
    return { kind: "chunked" };
  }
  if (length === undefined) return undefined;
  if (!/^\d{1,15}$/.test(length)) throw new MessageError(`sent Content-Length ${JSON.stringify(length.slice(0, 80))}`);
  return { kind: "length", length: Number(length) };
}

/** The state in a chunked body. */
type ChunkStep = "size" | "data" | "data end" | "trailer";

/** Reads consecutive messages from received bytes; buffers at most a head and the bytes of one read. */
export class MessageReader {
  private readonly received = new Gathered();
  /** Offset up to which the end of the head was not found. */
  private searched = 0;
  private extent: Extent | undefined;
  private left = 0;
  private step: ChunkStep = "size";
  private trailer = 0;

  /** @param maxHead maximum bytes of a head or a trailer */
  constructor(
    private readonly decode: Decode,
    private readonly maxHead: number,
  ) {}

  /** Received bytes that have not been read. */
  get pending(): number {
    return this.received.size;
  }

  receive(bytes: Uint8Array): void {
    this.received.add(bytes);
  }

  /** The next head, if complete. @throws MessageError */
  head(): Head | undefined {
    const end = find(this.received.bytes, HEAD_END, this.searched);
    if ((end < 0 ? this.received.size : end) > this.maxHead)
      throw new MessageError(`sent more than ${this.maxHead} bytes before the body`, 431);
    if (end < 0) {
      this.searched = Math.max(0, this.received.size - HEAD_END.length + 1);
      return undefined;
    }
    this.searched = 0;
    const [first = "", ...lines] = this.decode(this.received.take(end)).split("\r\n");
    this.received.take(HEAD_END.length);
    return { first, headers: first === "" ? new Map() : headersOf(lines) };
  }

  /** Skips empty lines before a message (RFC 9112, section 2.2). */
  skipEmptyLines(): void {
    while (find(this.received.bytes.subarray(0, 2), LINE_END, 0) === 0) {
      this.received.take(LINE_END.length);
      this.searched = 0;
    }
  }

  /** Begins the body of the current message. */
  begin(extent: Extent): void {
    this.extent = extent;
    this.left = extent.kind === "length" ? extent.length : 0;
    this.step = "size";
    this.trailer = 0;
  }

  /** Whether the whole body has been read. */
  get isWhole(): boolean {
    return this.extent === undefined || (this.extent.kind === "length" && this.left === 0);
  }

  /** Announced bytes of the body that have not been read; 0 without a length. */
  get announced(): number {
    return this.extent?.kind === "length" ? this.left : 0;
  }

  /** The connection ended. @returns whether that ends the body */
  end(): boolean {
    if (this.extent?.kind === "until close") this.extent = undefined;
    return this.isWhole;
  }

  /**
   * The next bytes of the body, valid until more are received; undefined: more must arrive first. @throws MessageError
   */
  part(): Uint8Array | undefined {
    if (this.isWhole || this.extent === undefined) return undefined;
    if (this.extent.kind === "until close") return this.available(this.received.size);
    if (this.extent.kind === "length") return this.data();
    return this.chunk();
  }

  private available(most: number): Uint8Array | undefined {
    const count = Math.min(most, this.received.size);
    return count === 0 ? undefined : this.received.take(count);
  }

  private data(): Uint8Array | undefined {
    const bytes = this.available(this.left);
    this.left -= bytes?.length ?? 0;
    return bytes;
  }

  private chunk(): Uint8Array | undefined {
    for (;;) {
      if (this.step === "data") {
        if (this.left > 0) return this.data();
        this.step = "data end";
      }
      const line = this.line();
      if (line === undefined) return undefined;
      if (this.step === "data end") {
        if (line !== "") throw new MessageError("sent a malformed chunk");
        this.step = "size";
      } else if (this.step === "size") this.size(line);
      else if (line === "") {
        this.extent = undefined;
        return undefined;
      } else this.trailer += line.length;
    }
  }

  private size(line: string): void {
    const size = /^([0-9a-f]{1,12})[ \t]*(;|$)/i.exec(line)?.[1];
    if (size === undefined) throw new MessageError("sent a malformed chunk");
    this.left = Number.parseInt(size, 16);
    this.step = this.left === 0 ? "trailer" : "data";
  }

  /** The next line of what stands around the chunks. */
  private line(): string | undefined {
    const { bytes } = this.received;
    const end = find(bytes, LINE_END, 0);
    if ((end < 0 ? bytes.length : end) > MAX_CHUNK_LINE || this.trailer > this.maxHead)
      throw new MessageError("sent a malformed chunk");
    if (end < 0) return undefined;
    const line = this.decode(this.received.take(end));
    this.received.take(LINE_END.length);
    return line;
  }
}

/** A response with its body. */
export interface HttpResponse {
  readonly status: number;
  readonly body: string;
  /** The header Retry-After. */
  readonly retryAfter?: string | undefined;
}

interface ResponseHead {
  readonly status: number;
  readonly headers: Headers;
  /** Whether the server accepts another request on this connection. */
  readonly keeps: boolean;
}

/** Statuses without a body (RFC 9112, section 6.3). */
const BODILESS: readonly number[] = [204, 304];

/** Reads the head of a response and the body piece by piece. Heads of status 1xx only announce it (RFC 9110, section 15.2). */
export class ResponseStream {
  head: ResponseHead | undefined;
  private readonly reader: MessageReader;
  private interim = 0;
  private hasInput = false;

  constructor(decode: Decode) {
    this.reader = new MessageReader(decode, MAX_HEAD);
  }

  /** Whether nothing has arrived. */
  get isEmpty(): boolean {
    return !this.hasInput;
  }

  get isWhole(): boolean {
    return this.head !== undefined && this.reader.isWhole;
  }

  /** Whether the server accepts another request on this connection, and sent no extra bytes. */
  get isReusable(): boolean {
    return this.isWhole && this.head?.keeps === true && this.reader.pending === 0;
  }

  /** @throws MessageError */
  receive(bytes: Uint8Array): void {
    this.hasInput ||= bytes.length > 0;
    this.reader.receive(bytes);
    while (this.head === undefined) {
      const before = this.reader.pending;
      const head = this.reader.head();
      if (head === undefined) break;
      this.head = this.begin(head);
      if (this.head !== undefined) break;
      this.interim += before - this.reader.pending;
      if (this.interim > MAX_HEAD) throw new MessageError(`sent more than ${MAX_HEAD} bytes before the body`);
    }
  }

  /** The next bytes of the body; undefined: more must arrive, or it is complete. @throws MessageError */
  part(): Uint8Array | undefined {
    return this.head === undefined ? undefined : this.reader.part();
  }

  /** The connection ended. @returns whether the response is complete */
  end(): boolean {
    return this.head !== undefined && this.reader.end();
  }

  private begin({ first, headers }: Head): ResponseHead | undefined {
    const code = STATUS_LINE.exec(first)?.[1];
    if (code === undefined)
      throw new MessageError(`answered ${JSON.stringify(first.slice(0, 80))}, which is not HTTP/1.1`);
    if (code.startsWith("1")) return undefined;
    const status = Number(code);
    const extent = BODILESS.includes(status)
      ? ({ kind: "length", length: 0 } as const)
      : (extentOf(headers) ?? ({ kind: "until close" } as const));
    this.reader.begin(extent);
    const keeps =
      first.startsWith("HTTP/1.1") &&
      extent.kind !== "until close" &&
      !/\bclose\b/i.test(headers.get("connection") ?? "");
    return { status, headers, keeps };
  }
}

/** Assembles a response from received bytes. */
export class ResponseReader {
  readonly stream: ResponseStream;
  private readonly body = new Gathered();

  constructor(private readonly decode: Decode) {
    this.stream = new ResponseStream(decode);
  }

  get isEmpty(): boolean {
    return this.stream.isEmpty;
  }

  /** Returns the response once it is complete. @throws MessageError if it is not HTTP/1.1 or too long */
  receive(bytes: Uint8Array): HttpResponse | undefined {
    this.stream.receive(bytes);
    for (let part = this.stream.part(); part !== undefined; part = this.stream.part()) {
      if (this.body.size + part.length > MAX_BODY) throw new MessageError(`sent more than ${MAX_BODY} bytes`, 413);
      this.body.add(part);
    }
    return this.stream.isWhole ? this.response() : undefined;
  }

  /** The connection was closed: returns the response if it is complete. */
  end(): HttpResponse | undefined {
    return this.stream.end() ? this.response() : undefined;
  }

  private response(): HttpResponse | undefined {
    const { head } = this.stream;
    if (head === undefined) return undefined;
    const { status, headers } = head;
    return { status, body: this.decode(this.body.take()), retryAfter: headers.get("retry-after") };
  }
}
