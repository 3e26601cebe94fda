/** Requests over HTTP/1.1 to one server: connections are reused, answers are limited in size. */
import type { Connection } from "../net";
import {
  type Decode,
  Gathered,
  type HttpResponse,
  MAX_BODY,
  MessageError,
  ResponseReader,
  ResponseStream,
} from "./message";

export interface HttpRequest {
  readonly method: "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Path and query, beginning with `/`. */
  readonly path: string;
  /** Besides `host` and `content-length`. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** No answer in time; the server may have processed the request. */
export class HttpTimeout extends Error {
  override readonly name = "HttpTimeout";
  constructor(readonly deadlineMs: number) {
    super(`no answer within ${deadlineMs} ms`);
  }
}

/** The connection ended without an answer; the server may have processed the request. */
class Dropped extends Error {}

export interface HttpClientOptions {
  /** The server's name in requests: `host:port`. */
  readonly authority: string;
  /** Connects to it within a number of milliseconds. */
  readonly connect: (options: { readonly deadlineMs: number; readonly signal: AbortSignal }) => Promise<Connection>;
  /** Maximum connections for requests; streams have their own. Further requests wait. @default 4 */
  readonly connections?: number;
  /** Maximum bytes of all current answers; an answer beyond it fails. @default 8 MiB for each */
  readonly answerBytes?: number;
  /** Milliseconds for which an idle connection is kept. @default 10 s */
  readonly idleMs?: number;
  /** Told when a connection that is kept ends before its time; by an error if the server has not closed it. */
  readonly ended?: (error?: unknown) => void;
}

/** A response whose body is read as it arrives. */
export interface HttpStream {
  readonly status: number;
  /**
   * The body in pieces, each valid until the next one. Reads only while a piece is requested, so it must be iterated to
   * close the connection. @throws HttpTimeout after the deadline, Error if the connection breaks
   */
  readonly parts: AsyncIterable<Uint8Array>;
}

export interface StreamLimits {
  /** Milliseconds until the response begins. */
  readonly connectMs: number;
  /**
   * Milliseconds without a byte after which the stream ends without an error, since its other end may have vanished.
   * @default unlimited
   */
  readonly idleMs?: number;
  /** Milliseconds for the whole response. @default unlimited */
  readonly deadlineMs?: number;
  /** Ends the stream. */
  readonly signal: AbortSignal;
}

/** Safe methods (RFC 9110, section 9.2.1), whose requests may be repeated, as Go's client and browsers do. */
const SAFE: readonly string[] = ["GET", "HEAD"];
const CONNECTIONS = 4;
const IDLE_MS = 10_000;
const LINE_FEED = 10;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const decode: Decode = (bytes) => decoder.decode(bytes);

/** A connection, and the result of a pending read. */
class Link {
  private waiting: Promise<Uint8Array | undefined> | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly connection: Connection,
    readonly isUsed = false,
  ) {}

  /** Watches an idle connection: it is not reused after the server closes it or sends something. */
  rest(idleMs: number, gone: (error?: unknown) => void, late: () => void): void {
    this.waiting = this.connection.read();
    this.waiting.then(() => gone(), gone);
    this.timer = setTimeout(late, idleMs);
  }

  wake(): Link {
    clearTimeout(this.timer);
    const link = new Link(this.connection, true);
    link.waiting = this.waiting;
    return link;
  }

  read(): Promise<Uint8Array | undefined> {
    const first = this.waiting ?? this.connection.read();
    this.waiting = undefined;
    return first;
  }

  close(): void {
    clearTimeout(this.timer);
    this.connection.close();
  }
}

export class HttpClient {
  private readonly idle = new Set<Link>();
  private readonly queue: (() => void)[] = [];
  private open = 0;
  /** Bytes of current answers. */
  private held = 0;
  private isClosed = false;

  constructor(private readonly options: HttpClientOptions) {}

  /**
   * Sends a request and reads the answer. A safe request is sent once more, over a new connection, if a reused one
   * ends before the answer begins.
   * @param deadlineMs milliseconds for everything, including the wait for a connection
   * @throws HttpTimeout, NetError, or an Error if the server does not answer
   */
  async request(request: HttpRequest, deadlineMs: number): Promise<HttpResponse> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), deadlineMs);
    try {
      await this.enter(late.signal);
      try {
        return await this.exchange(encoded(this.options.authority, request), request.method, deadlineMs, late.signal);
      } finally {
        this.leave();
      }
    } catch (error) {
      if (!late.signal.aborted) throw error;
      // Other kept connections may lead to the same silent server.
      for (const link of this.idle) this.drop(link);
      throw new HttpTimeout(deadlineMs);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Requests a streamed response, on a separate connection. @throws as {@link request} */
  async stream(request: HttpRequest, { connectMs, idleMs, deadlineMs, signal }: StreamLimits): Promise<HttpStream> {
    const ended = new AbortController();
    const end = () => ended.abort();
    let late: HttpTimeout | undefined;
    const after = (ms: number) =>
      setTimeout(() => {
        late = new HttpTimeout(ms);
        ended.abort();
      }, ms);
    if (signal.aborted) end();
    signal.addEventListener("abort", end, { once: true });
    const timer = after(connectMs);
    const whole = deadlineMs === undefined ? undefined : after(deadlineMs);
    const leave = () => {
      clearTimeout(whole);
      signal.removeEventListener("abort", end);
    };
    const reasonOf = (error: unknown) => late ?? error;
    try {
      const link = await this.connect(connectMs, ended.signal);
      const close = () => link.close();
      try {
        ended.signal.addEventListener("abort", close, { once: true });
        if (ended.signal.aborted) close();
        const stream = new ResponseStream(decode);
        await link.connection.write(encoded(this.options.authority, request));
        while (stream.head === undefined) await receive(link, stream);
        const { status } = stream.head;
        return { status, parts: partsOf(link, stream, idleMs, { reasonOf, leave }) };
      } catch (error) {
        close();
        throw error;
      }
    } catch (error) {
      leave();
      throw reasonOf(error);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Ends idle connections; those in use end with their requests. */
  close(): void {
    this.isClosed = true;
    for (const link of this.idle) this.drop(link);
  }

  private async exchange(
    bytes: Uint8Array,
    method: HttpRequest["method"],
    deadlineMs: number,
    signal: AbortSignal,
  ): Promise<HttpResponse> {
    const kept = this.kept();
    if (kept !== undefined) {
      try {
        return await this.send(kept, bytes, signal);
      } catch (error) {
        if (!(error instanceof Dropped) || !SAFE.includes(method) || signal.aborted) throw error;
      }
    }
    return this.send(await this.connect(deadlineMs, signal), bytes, signal);
  }

  private async connect(deadlineMs: number, signal: AbortSignal): Promise<Link> {
    return new Link(await this.options.connect({ deadlineMs, signal }));
  }

  private async send(link: Link, bytes: Uint8Array, signal: AbortSignal): Promise<HttpResponse> {
    const reader = new ResponseReader(decode);
    const close = () => link.close();
    signal.addEventListener("abort", close, { once: true });
    try {
      if (signal.aborted) throw new Dropped("the request is no longer wanted");
      let refused: unknown;
      // A server that does not accept the whole request may have answered with the reason.
      await link.connection.write(bytes).catch((error: unknown) => {
        refused = error ?? new Dropped("not sent");
      });
      const response = await this.answer(link, reader);
      if (refused === undefined && reader.stream.isReusable && !signal.aborted) this.keep(link);
      else close();
      return response;
    } catch (error) {
      close();
      if (!reader.isEmpty || error instanceof MessageError) throw error;
      throw new Dropped(error instanceof Error ? error.message : String(error), { cause: error });
    } finally {
      signal.removeEventListener("abort", close);
    }
  }

  private async answer(link: Link, reader: ResponseReader): Promise<HttpResponse> {
    const { answerBytes = Number.POSITIVE_INFINITY } = this.options;
    let size = 0;
    try {
      for (;;) {
        const bytes = await link.read();
        size += bytes?.length ?? 0;
        this.held += bytes?.length ?? 0;
        if (this.held > answerBytes)
          throw new MessageError(`sent more than there is room for: ${answerBytes} bytes`, 413);
        const response = bytes === undefined ? reader.end() : reader.receive(bytes);
        if (response !== undefined) return response;
        if (bytes === undefined) throw new Error(BROKEN);
      }
    } finally {
      this.held -= size;
    }
  }

  /** The most recently used connection. */
  private kept(): Link | undefined {
    const link = [...this.idle].at(-1);
    if (link !== undefined) this.idle.delete(link);
    return link?.wake();
  }

  private keep(used: Link): void {
    if (this.isClosed) {
      used.close();
      return;
    }
    const link = new Link(used.connection, true);
    this.idle.add(link);
    const gone = (error?: unknown) => {
      if (this.drop(link)) this.options.ended?.(error);
    };
    link.rest(this.options.idleMs ?? IDLE_MS, gone, () => this.drop(link));
  }

  /** @returns whether it was idle: a connection in use has its own reads */
  private drop(link: Link): boolean {
    const isKept = this.idle.delete(link);
    if (isKept) link.close();
    return isKept;
  }

  private async enter(signal: AbortSignal): Promise<void> {
    const { connections = CONNECTIONS } = this.options;
    if (this.queue.length === 0 && this.open < connections) {
      this.open += 1;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const late = () => {
        this.queue.splice(this.queue.indexOf(turn), 1);
        reject(new Dropped("no connection was free"));
      };
      const turn = () => {
        signal.removeEventListener("abort", late);
        resolve();
      };
      this.queue.push(turn);
      signal.addEventListener("abort", late, { once: true });
    });
  }

  /** Passes the slot to the next request. */
  private leave(): void {
    const next = this.queue.shift();
    if (next === undefined) this.open -= 1;
    else next();
  }
}

function encoded(authority: string, { method, path, headers = {}, body }: HttpRequest): Uint8Array {
  const payload = body === undefined ? undefined : encoder.encode(body);
  const fields = Object.entries({ host: authority, "user-agent": "linkerd-cni", ...headers });
  if (payload !== undefined) fields.push(["content-length", String(payload.length)]);
  const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const head = encoder.encode(`${method} ${path} HTTP/1.1\r\n${lines}\r\n`);
  if (payload === undefined) return head;
  const bytes = new Uint8Array(head.length + payload.length);
  bytes.set(head);
  bytes.set(payload, head.length);
  return bytes;
}

const BROKEN = "closed the connection without a whole answer";

/** Processes the next bytes. @returns whether more may follow */
async function receive(link: Link, stream: ResponseStream): Promise<boolean> {
  const bytes = await link.read();
  if (bytes !== undefined) stream.receive(bytes);
  else if (!stream.end()) throw new Error(BROKEN);
  return bytes !== undefined;
}

interface StreamEnd {
  /** Why it ended with an error. */
  readonly reasonOf: (error: unknown) => unknown;
  readonly leave: () => void;
}

async function* partsOf(
  link: Link,
  stream: ResponseStream,
  idleMs: number | undefined,
  { reasonOf, leave }: StreamEnd,
): AsyncGenerator<Uint8Array> {
  let isSilent = false;
  const silence = () => {
    isSilent = true;
    link.close();
  };
  try {
    for (let isOpen = true; isOpen; ) {
      for (let part = stream.part(); part !== undefined; part = stream.part()) yield part;
      if (stream.isWhole) break;
      const idle = idleMs === undefined ? undefined : setTimeout(silence, idleMs);
      try {
        isOpen = await receive(link, stream);
      } finally {
        clearTimeout(idle);
      }
    }
  } catch (error) {
    if (!isSilent) throw reasonOf(error);
  } finally {
    leave();
    link.close();
  }
}

/** The lines of a streamed response. */
export async function* linesOf(parts: HttpStream["parts"]): AsyncGenerator<string> {
  const rest = new Gathered();
  for await (const part of parts) yield* lines(part, rest);
  if (rest.size > 0) yield decode(rest.take());
}

/**
 * The complete lines in some bytes; the rest after the last one is kept as bytes, since a character may be incomplete.
 */
function* lines(part: Uint8Array, rest: Gathered): Generator<string> {
  let start = 0;
  for (let end = part.indexOf(LINE_FEED); end >= 0; end = part.indexOf(LINE_FEED, start)) {
    rest.add(part.subarray(start, end));
    start = end + 1;
    yield decode(rest.take());
  }
  rest.add(part.subarray(start));
  if (rest.size > MAX_BODY) throw new MessageError(`sent a line of more than ${MAX_BODY} bytes`);
}
