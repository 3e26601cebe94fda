/** As much of HTTP/1.1 as a GET from an API server takes. */
import { type ApiRequest, type ApiResponse, type ApiServer, authority } from "../../kubernetes/client";

export function encodeRequest(server: ApiServer, call: ApiRequest): string {
  const lines = [
    `${call.method ?? "GET"} ${call.path} HTTP/1.1`,
    `Host: ${authority(server)}`,
    "Accept: application/json",
    "User-Agent: linkerd-cni",
    ...(server.token === undefined ? [] : [`Authorization: Bearer ${server.token}`]),
  ];
  return `${lines.join("\r\n")}\r\n\r\n`;
}

/** How the end of a body is known. */
type Extent = { readonly kind: "length"; readonly length: number } | { readonly kind: "chunked" | "until close" };

interface Head {
  readonly status: number;
  readonly extent: Extent;
  /** Where the body begins. */
  readonly end: number;
}

const HEAD_END = "\r\n\r\n";
const STATUS_LINE = /^HTTP\/1\.[01] (\d{3})/;
/** No pod is larger: the API server's own limit for an object is 3 MiB. */
const MAX_BYTES = 16 * 1024 * 1024;

function extentOf(headers: ReadonlyMap<string, string>): Extent {
  if (headers.get("transfer-encoding")?.toLowerCase() === "chunked") return { kind: "chunked" };
  const length = headers.get("content-length");
  return length === undefined ? { kind: "until close" } : { kind: "length", length: Number(length) };
}

/** The head of the response; heads of status 1xx only announce it (RFC 9110, section 15.2). */
function parseHead(received: Buffer, start = 0): Head | undefined {
  const end = received.indexOf(HEAD_END, start);
  if (end < 0) return undefined;
  const [first = "", ...lines] = received.toString("latin1", start, end).split("\r\n");
  const status = STATUS_LINE.exec(first)?.[1];
  if (status?.startsWith("1")) return parseHead(received, end + HEAD_END.length);
  if (status === undefined) throw new Error(`answered ${JSON.stringify(first.slice(0, 80))}, which is not HTTP/1.1`);
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  return { status: Number(status), extent: extentOf(new Map(headers)), end: end + HEAD_END.length };
}

/** The body of a chunked response, or undefined while it is not whole. */
function unchunk(received: Buffer, start: number): Buffer | undefined {
  const chunks: Buffer[] = [];
  for (let at = start; ; ) {
    const line = received.indexOf("\r\n", at);
    if (line < 0) return undefined;
    const size = Number.parseInt(received.toString("latin1", at, line), 16);
    if (!(size >= 0)) throw new Error("sent a malformed chunk");
    const begin = line + 2;
    if (received.length < begin + size + 2) return undefined;
    if (size === 0) return Buffer.concat(chunks);
    chunks.push(received.subarray(begin, begin + size));
    at = begin + size + 2;
  }
}

function bodyOf(received: Buffer, { extent, end }: Head): Buffer | undefined {
  if (extent.kind === "chunked") return unchunk(received, end);
  return extent.kind === "length" ? received.subarray(end, end + extent.length) : received.subarray(end);
}

/** Puts a response together from what arrives; it looks at the whole only when the whole may be there. */
export class ResponseReader {
  private parts: Buffer[] = [];
  private size = 0;
  private head: Head | undefined;

  get isEmpty(): boolean {
    return this.size === 0;
  }

  /** Gives the response once it is whole. @throws Error for what is not HTTP/1.1 or has no end */
  receive(bytes: Uint8Array): ApiResponse | undefined {
    this.parts.push(Buffer.from(bytes));
    this.size += bytes.length;
    if (this.size > MAX_BYTES) throw new Error(`sent more than ${MAX_BYTES} bytes`);
    this.head ??= parseHead(this.join());
    return this.head !== undefined && this.mayBeWhole(this.head) ? this.response(this.head) : undefined;
  }

  /** The connection was closed: gives the response where what arrived is all of one. */
  end(): ApiResponse | undefined {
    if (this.head === undefined) return undefined;
    const isWhole = this.head.extent.kind === "until close" || this.mayBeWhole(this.head);
    return isWhole ? this.response(this.head) : undefined;
  }

  private mayBeWhole({ extent, end }: Head): boolean {
    if (extent.kind === "length") return this.size >= end + extent.length;
    return extent.kind === "chunked" && this.tail() === HEAD_END;
  }

  private response(head: Head): ApiResponse | undefined {
    const body = bodyOf(this.join(), head);
    return body === undefined ? undefined : { status: head.status, body: body.toString("utf8") };
  }

  /** The last bytes, however small the pieces were. */
  private tail(): string {
    const length = HEAD_END.length;
    if ((this.parts.at(-1)?.length ?? 0) < length) this.join();
    return (this.parts.at(-1) ?? Buffer.alloc(0)).subarray(-length).toString("latin1");
  }

  private join(): Buffer {
    const [only] = this.parts.length === 1 ? this.parts : [Buffer.concat(this.parts)];
    const joined = only ?? Buffer.alloc(0);
    this.parts = [joined];
    return joined;
  }
}
