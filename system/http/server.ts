/** An HTTP/1.1 server for connections of any kind. Requests, connections and waits have limits. */
import type { Connection } from "../net";
import { NetError } from "../net-error";
import {
  type Decode,
  type Extent,
  extentOf,
  Gathered,
  type Head,
  type Headers,
  MessageError,
  MessageReader,
} from "./message";

/** An error to answer a request with. */
export class HttpError extends Error {
  override readonly name: string = "HttpError";
  constructor(
    readonly status: number,
    message: string,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(message);
  }
}

/** Options for reading a body. */
interface Reading {
  /** Its name in error messages. @default "body" */
  readonly what?: string;
  /** Maximum bytes. */
  readonly most: number;
  /** Milliseconds within which it must arrive. */
  readonly deadlineMs: number;
}

export interface ServerRequest {
  readonly method: string;
  /** Path and query. */
  readonly target: string;
  readonly headers: Headers;
  /**
   * Reads the body; call it once. If it is not called, the connection ends with the answer. @throws HttpError 413 if it
   * is too large, 408 if it is too slow or its connection is closed, 400 if it breaks off or is malformed
   */
  body(reading: Reading): Promise<Uint8Array>;
}

export interface ServerResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Not sent to a HEAD. */
  readonly body: string;
}

export interface HttpServerOptions {
  /** Answers a request; an error becomes a 500. */
  readonly answer: (request: ServerRequest) => Promise<ServerResponse>;
  /** Maximum connections. The one that has waited longest for its client is closed for a new one. */
  readonly connections: number;
  /** Maximum bytes of bodies in transit. The connection of the body that began first is closed for more. @default no limit */
  readonly bodyBytes?: number;
  /** Maximum bytes of a request's head. */
  readonly headBytes: number;
  /**
   * Milliseconds within which the head of a request must arrive, from the connection's beginning or the previous
   * answer.
   */
  readonly idleMs: number;
  /** Milliseconds within which a client must accept an answer. @default 10 s */
  readonly sendMs?: number;
  /** Interval in milliseconds of progress messages (RFC 2518, section 10.1) to a waiting client. @default never */
  readonly processingMs?: number;
}

const PHRASES: Readonly<Record<number, string>> = {
  200: "OK",
  400: "Bad Request",
  404: "Not Found",
  405: "Method Not Allowed",
  408: "Request Timeout",
  413: "Content Too Large",
  415: "Unsupported Media Type",
  431: "Request Header Fields Too Large",
  500: "Internal Server Error",
  503: "Service Unavailable",
};
const SEND_MS = 10_000;
const REQUEST_LINE = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([\x21-\x7e]+) HTTP\/1\.([01])$/;
const NO_BODY: Extent = { kind: "length", length: 0 };

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const PROCESSING = encoder.encode("HTTP/1.1 102 Processing\r\n\r\n");
const decode: Decode = (bytes) => decoder.decode(bytes);

/** What a session reports to its server. */
interface Progress {
  /** It waits for a request, or for the client to accept an answer. */
  readonly waits: () => void;
  /** It waits for the rest of a body, of which so many more bytes have arrived. */
  readonly receiving: (bytes: number) => void;
  /** It has what it waited for, or gave up. */
  readonly busy: () => void;
}

/** A connection of a client, with consecutive requests. */
class Session {
  /** No request has begun. */
  isIdle = false;
  private readonly reader: MessageReader;
  private keeps = false;

  constructor(
    private readonly connection: Connection,
    private readonly options: HttpServerOptions,
    /** Whether the server wants the client to leave. */
    private readonly isDraining: () => boolean,
    private readonly progress: Progress,
  ) {
    this.reader = new MessageReader(decode, options.headBytes);
  }

  close(): void {
    this.connection.close();
  }

  /** Answers requests until the connection ends. */
  async run(): Promise<void> {
    try {
      do {
        this.isIdle = true;
        this.progress.waits();
        const head = await this.next();
        if (head === undefined) break;
        this.isIdle = false;
        this.progress.busy();
        await this.reply(head);
      } while (this.keeps);
    } catch {
      // The connection broke, or its client was too slow to be answered.
    } finally {
      this.close();
    }
  }

  /** The next request's head; undefined: none. Ends the connection if it takes too long. */
  private async next(): Promise<Head | Error | undefined> {
    const timer = setTimeout(() => this.close(), this.options.idleMs);
    try {
      for (;;) {
        this.reader.skipEmptyLines();
        const head = this.head();
        if (head !== undefined) return head;
        const bytes = await this.connection.read();
        if (bytes === undefined) return undefined;
        this.reader.receive(bytes);
      }
    } finally {
      clearTimeout(timer);
    }
  }

  private head(): Head | MessageError | undefined {
    try {
      return this.reader.head();
    } catch (error) {
      if (error instanceof MessageError) return error;
      throw error;
    }
  }

  private async reply(head: Head | Error): Promise<void> {
    this.keeps = false;
    let method = "";
    let response: ServerResponse;
    try {
      if (head instanceof Error) throw head;
      const request = this.request(head);
      method = request.method;
      response = await this.answer(request);
    } catch (error) {
      response = refusal(error);
    }
    // The rest of a body is not read.
    this.keeps &&= this.reader.isWhole && !this.isDraining();
    await this.send(response, method === "HEAD");
  }

  private async answer(request: ServerRequest): Promise<ServerResponse> {
    const { processingMs, answer } = this.options;
    if (processingMs === undefined) return answer(request);
    const tell = () => {
      // If the client is gone, this shows when the answer is sent.
      this.connection.write(PROCESSING).catch(() => undefined);
      timer = setTimeout(tell, processingMs);
    };
    let timer = setTimeout(tell, processingMs);
    try {
      return await answer(request);
    } finally {
      clearTimeout(timer);
    }
  }

  /** @throws MessageError if the bytes are not a request */
  private request({ first, headers }: Head): ServerRequest {
    const [, method, target, minor] = REQUEST_LINE.exec(first) ?? [];
    if (method === undefined || target === undefined) throw new MessageError("the request is not HTTP/1.1");
    this.reader.begin(extentOf(headers) ?? NO_BODY);
    this.keeps = minor === "1" && !/\bclose\b/i.test(headers.get("connection") ?? "");
    return { method, target, headers, body: (reading) => this.body(reading) };
  }

  private async body(reading: Reading): Promise<Uint8Array> {
    const { deadlineMs, what = "body" } = reading;
    const late = new HttpError(408, `the ${what} did not arrive within ${deadlineMs} ms`);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const deadline = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(late), deadlineMs);
    });
    const end = new AbortController();
    try {
      return await Promise.race([this.gather(reading, what, end.signal), deadline]);
    } catch (error) {
      this.keeps = false;
      if (error instanceof MessageError) throw new HttpError(error.status, `the client ${error.message}`);
      if (error instanceof NetError) throw new HttpError(408, `the ${what} did not arrive: ${error.message}`);
      throw error;
    } finally {
      clearTimeout(timer);
      end.abort();
      this.progress.busy();
    }
  }

  private async gather({ most }: Reading, what: string, signal: AbortSignal): Promise<Uint8Array> {
    const tooLarge = () => new HttpError(413, `the ${what} is larger than ${most} bytes`);
    if (this.reader.announced > most) throw tooLarge();
    this.progress.receiving(0);
    const gathered = new Gathered();
    for (;;) {
      for (let part = this.reader.part(); part !== undefined; part = this.reader.part()) {
        if (gathered.size + part.length > most) throw tooLarge();
        this.progress.receiving(part.length);
        gathered.add(part);
      }
      if (this.reader.isWhole) return gathered.take();
      const bytes = await this.connection.read();
      // A body that timed out may still arrive for a moment.
      if (signal.aborted) throw signal.reason;
      if (bytes === undefined) throw new HttpError(400, `the ${what} broke off`);
      this.reader.receive(bytes);
    }
  }

  private async send(response: ServerResponse, isHead: boolean): Promise<void> {
    const bytes = responseBytes(response, { keeps: this.keeps, isHead });
    const timer = setTimeout(() => this.close(), this.options.sendMs ?? SEND_MS);
    this.progress.waits();
    try {
      await this.connection.write(bytes);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** A response as it is sent; by default the last one of its connection. */
function responseBytes(
  { status, headers = {}, body }: ServerResponse,
  { keeps = false, isHead = false }: { readonly keeps?: boolean; readonly isHead?: boolean } = {},
): Uint8Array {
  const payload = encoder.encode(body);
  const fields = { ...headers, "content-length": payload.length, connection: keeps ? "keep-alive" : "close" };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  const message = new Gathered();
  message.add(encoder.encode(`HTTP/1.1 ${status} ${PHRASES[status] ?? "Status"}\r\n${lines.join("")}\r\n`));
  if (!isHead) message.add(payload);
  return message.take();
}

function refusal(error: unknown): ServerResponse {
  const message = error instanceof Error ? error.message : String(error);
  const status = error instanceof HttpError || error instanceof MessageError ? error.status : 500;
  const headers = error instanceof HttpError ? error.headers : {};
  return { status, headers: { ...headers, "content-type": "text/plain; charset=utf-8" }, body: `${message}\n` };
}

/** Answers requests on given connections. */
export class HttpServer {
  private readonly sessions = new Set<Session>();
  /** Sessions that wait for their client, longest first, with the bytes of their body so far. */
  private readonly waiting = new Map<Session, number>();
  private bodyBytes = 0;
  private isDraining = false;
  private isClosed = false;
  private emptied: () => void = () => undefined;

  constructor(private readonly options: HttpServerOptions) {}

  /** Accepts a connection. */
  readonly take = (connection: Connection): void => {
    if (this.isClosed || !this.makeRoom()) {
      connection.close();
      return;
    }
    const session: Session = new Session(connection, this.options, () => this.isDraining, {
      waits: () => {
        this.waiting.delete(session);
        this.waiting.set(session, 0);
        if (this.isClosed && session.isIdle) session.close();
      },
      receiving: (bytes) => this.receive(session, bytes),
      busy: () => this.settle(session),
    });
    this.sessions.add(session);
    void session.run().finally(() => {
      this.sessions.delete(session);
      this.settle(session);
      if (this.sessions.size === 0) this.emptied();
    });
  };

  /** @returns whether there is room for another connection */
  private makeRoom(): boolean {
    if (this.sessions.size < this.options.connections) return true;
    const [oldest] = this.waiting.keys();
    if (oldest !== undefined) this.end(oldest);
    return oldest !== undefined;
  }

  private receive(session: Session, bytes: number): void {
    this.waiting.set(session, (this.waiting.get(session) ?? 0) + bytes);
    this.bodyBytes += bytes;
    for (const [oldest, held] of this.waiting) {
      if (this.bodyBytes <= (this.options.bodyBytes ?? Number.POSITIVE_INFINITY)) break;
      if (held > 0) this.end(oldest);
    }
  }

  private end(session: Session): void {
    this.settle(session);
    session.close();
  }

  /** It no longer waits. */
  private settle(session: Session): void {
    this.bodyBytes -= this.waiting.get(session) ?? 0;
    this.waiting.delete(session);
  }

  /** Makes each connection end with its next answer. */
  drain(): void {
    this.isDraining = true;
  }

  /**
   * Accepts no more connections, ends idle ones, and finishes the others. @param graceMs milliseconds for the
   * answers, after which their connections end
   */
  async close(graceMs: number): Promise<void> {
    this.isDraining = true;
    this.isClosed = true;
    for (const session of [...this.sessions]) {
      if (session.isIdle || graceMs === 0) session.close();
    }
    if (this.sessions.size === 0) return;
    const timer = setTimeout(() => {
      for (const session of [...this.sessions]) session.close();
    }, graceMs);
    await new Promise<void>((resolve) => {
      this.emptied = resolve;
    });
    clearTimeout(timer);
  }
}
