/** As much of HTTP/1.1 as a GET from an API server takes. */
import { type ApiResponse, type ApiServer, authority, bearer } from "../../kubernetes/api-server";
import { concat } from "../bytes";
import type { Host } from "../port";

/** @throws Error for a token that no header may hold */
export function encodeRequest(server: ApiServer, path: string): string {
  const authorization = bearer(server);
  const lines = [
    `GET ${path} HTTP/1.1`,
    `Host: ${authority(server)}`,
    "Accept: application/json",
    "User-Agent: linkerd-cni",
    ...(authorization === undefined ? [] : [`Authorization: ${authorization}`]),
  ];
  return `${lines.join("\r\n")}\r\n\r\n`;
}

/** What marks the end of a body. */
type Extent = { readonly kind: "length"; readonly length: number } | { readonly kind: "chunked" | "until close" };

interface Head {
  readonly status: number;
  readonly extent: Extent;
  readonly retryAfter: string | undefined;
  /** Where the body begins. */
  readonly end: number;
}

/** A response, and the header with which the server asks to wait before the next request. */
export interface HttpResponse extends ApiResponse {
  readonly retryAfter?: string;
}

const CR = 13;
const LF = 10;
const HEAD_END = Uint8Array.of(CR, LF, CR, LF);
const LINE_END = Uint8Array.of(CR, LF);
const STATUS_LINE = /^HTTP\/1\.[01] (\d{3})/;
/** More than any pod has: the API server's limit for an object is 3 MiB. */
const MAX_BYTES = 16 * 1024 * 1024;
const MAX_HEAD = 64 * 1024;

/** The index of a sequence that begins with CR, or -1. */
function find(bytes: Uint8Array, wanted: Uint8Array, from: number): number {
  for (let at = bytes.indexOf(CR, from); at >= 0; at = bytes.indexOf(CR, at + 1)) {
    if (wanted.every((byte, index) => bytes[at + index] === byte)) return at;
  }
  return -1;
}

function extentOf(headers: ReadonlyMap<string, string>): Extent {
  if (headers.get("transfer-encoding")?.toLowerCase() === "chunked") return { kind: "chunked" };
  const length = headers.get("content-length");
  if (length === undefined) return { kind: "until close" };
  if (!/^\d{1,15}$/.test(length)) throw new Error(`sent Content-Length ${JSON.stringify(length.slice(0, 80))}`);
  return { kind: "length", length: Number(length) };
}

/** Assembles a response from what arrives. */
export class ResponseReader {
  private parts: Uint8Array[] = [];
  private size = 0;
  private head: Head | undefined;

  constructor(private readonly texts: Pick<Host, "decode">) {}

  get isEmpty(): boolean {
    return this.size === 0;
  }

  /** Returns the response once it is complete. @throws Error for what is not HTTP/1.1 or has no end */
  receive(bytes: Uint8Array): HttpResponse | undefined {
    this.parts.push(bytes.slice());
    this.size += bytes.length;
    if (this.size > MAX_BYTES) throw new Error(`sent more than ${MAX_BYTES} bytes`);
    this.head ??= this.parseHead(this.join());
    return this.head !== undefined && this.mayBeWhole(this.head) ? this.response(this.head) : undefined;
  }

  /** The connection was closed: returns the response if it is complete. */
  end(): HttpResponse | undefined {
    if (this.head === undefined) return undefined;
    const isWhole = this.head.extent.kind === "until close" || this.mayBeWhole(this.head);
    return isWhole ? this.response(this.head) : undefined;
  }

  /** The head of the response; heads of status 1xx only announce it (RFC 9110, section 15.2). */
  private parseHead(received: Uint8Array): Head | undefined {
    for (let start = 0; ; ) {
      const end = find(received, HEAD_END, start);
      if ((end < 0 ? received.length : end) > MAX_HEAD)
        throw new Error(`sent more than ${MAX_HEAD} bytes before the body`);
      if (end < 0) return undefined;
      const [first = "", ...lines] = this.texts.decode(received.subarray(start, end)).split("\r\n");
      const status = STATUS_LINE.exec(first)?.[1];
      if (status === undefined)
        throw new Error(`answered ${JSON.stringify(first.slice(0, 80))}, which is not HTTP/1.1`);
      start = end + HEAD_END.length;
      if (status.startsWith("1")) continue;
      const headers = new Map<string, string>();
      for (const line of lines) {
        const colon = line.indexOf(":");
        headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
      }
      return { status: Number(status), extent: extentOf(headers), retryAfter: headers.get("retry-after"), end: start };
    }
  }

  /** Whether to look at all that arrived: to do so for each small piece would take quadratic time. */
  private mayBeWhole({ extent, end }: Head): boolean {
    if (extent.kind === "length") return this.size >= end + extent.length;
    return extent.kind === "chunked" && find(this.tail(), HEAD_END, 0) === 0;
  }

  private response({ status, extent, retryAfter, end }: Head): HttpResponse | undefined {
    const body = this.body(extent, end);
    if (body === undefined) return undefined;
    return { status, body: this.texts.decode(body), ...(retryAfter === undefined ? {} : { retryAfter }) };
  }

  private body(extent: Extent, start: number): Uint8Array | undefined {
    const received = this.join();
    if (extent.kind === "chunked") return this.unchunk(received, start);
    return extent.kind === "length" ? received.subarray(start, start + extent.length) : received.subarray(start);
  }

  /** The body of a chunked response, or undefined while it is incomplete. */
  private unchunk(received: Uint8Array, start: number): Uint8Array | undefined {
    const chunks: Uint8Array[] = [];
    for (let at = start; ; ) {
      const line = find(received, LINE_END, at);
      if (line < 0) return undefined;
      const size = Number.parseInt(this.texts.decode(received.subarray(at, line)), 16);
      if (!(size >= 0)) throw new Error("sent a malformed chunk");
      const begin = line + LINE_END.length;
      if (received.length < begin + size + LINE_END.length) return undefined;
      if (size === 0) return concat(chunks);
      chunks.push(received.subarray(begin, begin + size));
      at = begin + size + LINE_END.length;
    }
  }

  /** The last bytes, however small the pieces were. */
  private tail(): Uint8Array {
    const length = HEAD_END.length;
    if ((this.parts.at(-1)?.length ?? 0) < length) this.join();
    return (this.parts.at(-1) ?? new Uint8Array(0)).subarray(-length);
  }

  private join(): Uint8Array {
    if (this.parts.length !== 1) this.parts = [concat(this.parts)];
    return this.parts[0] ?? new Uint8Array(0);
  }
}
