/** Probes and metrics over HTTP, within the plugin's one loop: no connection may hold it up. */
import { reasonOf } from "../cni/errors";
import { concat } from "../host/bytes";
import { receiveSome, sendAll } from "../host/poll";
import type { Host } from "../host/port";
import { acceptConnection, listenTcp } from "../host/sockets";

export interface Answer {
  readonly status: 200 | 404 | 503;
  readonly body: string;
}

/** Answers by path. */
export type Answers = Readonly<Record<string, () => Answer>>;

/** A connection that has not sent its whole request. */
interface Connection {
  readonly since: number;
  readonly received: Uint8Array;
}

/** With the runtime's connection and the listener as many as one call polls. The oldest makes room for a new one. */
const MOST_CONNECTIONS = 48;
/** As many as are taken before the runtime's input gets its turn. */
const ACCEPTED_AT_ONCE = 64;
const LONGEST_REQUEST = 8192;
/** Milliseconds within which a request must be there. */
const PATIENCE_MS = 2000;
/** Milliseconds that a client has to take an answer: none, for it fits into its socket's buffer. */
const SEND_MS = 0;
const HEAD_END = "\r\n\r\n";
const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

export class AdminServer {
  private readonly connections = new Map<number, Connection>();
  private readonly listener: number;
  private readonly buffer = new Uint8Array(LONGEST_REQUEST);

  /** @throws SystemError where the port is taken */
  constructor(
    private readonly host: Host,
    port: number,
    private readonly answers: Answers,
  ) {
    this.listener = listenTcp(host, port);
  }

  /** What to poll for input. */
  descriptors(): readonly number[] {
    return [this.listener, ...this.connections.keys()];
  }

  /** Takes the input of a descriptor. */
  serve(descriptor: number): void {
    if (descriptor === this.listener) this.accept();
    else this.receive(descriptor);
  }

  /** Takes the connections that wait. A request has mostly come with its connection: it is answered at once. */
  private accept(): void {
    for (let taken = 0; taken < ACCEPTED_AT_ONCE; taken++) {
      const connection = acceptConnection(this.host, this.listener);
      if (connection === undefined) return;
      const [oldest] = this.connections.keys();
      if (oldest !== undefined && this.connections.size >= MOST_CONNECTIONS) this.evict(oldest);
      this.connections.set(connection, { since: this.host.elapsed(), received: new Uint8Array(0) });
      this.receive(connection);
    }
  }

  /** Ends a connection for another one's sake, unless its request is there by now. */
  private evict(descriptor: number): void {
    this.receive(descriptor);
    if (this.connections.has(descriptor)) this.end(descriptor);
  }

  private receive(descriptor: number): void {
    const connection = this.connections.get(descriptor);
    if (connection === undefined) return;
    const input = receiveSome(this.host, descriptor, this.buffer);
    if (input === "nothing") return;
    if (input === "closed") {
      this.end(descriptor);
      return;
    }
    const received = concat([connection.received, input]);
    const text = this.host.decode(received);
    if (!text.includes(HEAD_END) && received.length < LONGEST_REQUEST) {
      // A member that is there already keeps its place in the order.
      this.connections.set(descriptor, { ...connection, received });
      return;
    }
    sendAll(this.host, descriptor, this.host.encode(this.answer(text)), SEND_MS);
    this.end(descriptor);
  }

  /** Ends connections that take too long. */
  expire(): void {
    const now = this.host.elapsed();
    for (const [descriptor, { since }] of this.connections) if (now - since > PATIENCE_MS) this.end(descriptor);
  }

  private answer(request: string): string {
    const path = /^GET ([^ ?]*)/.exec(request)?.[1] ?? "";
    const handle = Object.hasOwn(this.answers, path) ? this.answers[path] : undefined;
    const { status, body } = handle === undefined ? { status: 404, body: "not found\n" } : attempt(handle);
    const length = this.host.encode(body).length;
    const head = [`HTTP/1.1 ${status} Status`, `Content-Type: ${METRICS_TYPE}`, `Content-Length: ${length}`];
    return [...head, "Connection: close", "", body].join("\r\n");
  }

  private end(descriptor: number): void {
    this.host.close(descriptor);
    this.connections.delete(descriptor);
  }
}

function attempt(handle: () => Answer): Answer {
  try {
    return handle();
  } catch (error) {
    return { status: 503, body: `${reasonOf(error)}\n` };
  }
}
