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

interface Head {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  /** Where the body begins. */
  readonly end: number;
}

const HEAD_END = "\r\n\r\n";
const STATUS_LINE = /^HTTP\/1\.[01] (\d{3})/;

function parseHead(received: Buffer): Head | undefined {
  const end = received.indexOf(HEAD_END);
  if (end < 0) return undefined;
  const [first = "", ...lines] = received.toString("latin1", 0, end).split("\r\n");
  const status = STATUS_LINE.exec(first)?.[1];
  if (status === undefined) throw new Error(`answered ${JSON.stringify(first.slice(0, 80))}, which is not HTTP/1.1`);
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  return { status: Number(status), headers: new Map(headers), end: end + HEAD_END.length };
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

function body(received: Buffer, head: Head, ended: boolean): Buffer | undefined {
  if (head.headers.get("transfer-encoding")?.toLowerCase() === "chunked") return unchunk(received, head.end);
  const length = head.headers.get("content-length");
  if (length === undefined) return ended ? received.subarray(head.end) : undefined;
  const end = head.end + Number(length);
  return received.length >= end ? received.subarray(head.end, end) : undefined;
}

/**
 * The response in what was received so far, or undefined while it is not whole.
 * @param ended the server closed the connection: what is there is all
 * @throws Error for what is not HTTP/1.1
 */
export function decodeResponse(received: Buffer, ended: boolean): ApiResponse | undefined {
  const head = parseHead(received);
  if (head === undefined) return undefined;
  const content = body(received, head, ended);
  return content === undefined ? undefined : { status: head.status, body: content.toString("utf8") };
}
