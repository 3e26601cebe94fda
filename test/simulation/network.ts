/** Connections of a simulated node, in memory. */
import type { Clock, Party } from "./clock";
import type { Failure, Socket } from "./seam/kernel";

/** Milliseconds from one end to the other. */
const LATENCY_MS = 0.2;

const CLOSED: Failure = { failure: { message: "the connection is closed", code: "" } };

export const failure = (message: string, code: string): Failure => ({ failure: { message, code } });

/** A process at an end of a connection; undefined for a server that is a part of the simulation. */
export interface Peer extends Party {
  turn(callback: () => void): void;
  /** What is closed when it ends. */
  readonly open: Set<{ close(): void }>;
}

/** One end of a connection. */
export class End implements Socket {
  private readonly arrived: (Uint8Array | undefined)[] = [];
  private reading: ((answer: Uint8Array | undefined | Failure) => void) | undefined;
  private isClosed = false;
  other!: End;

  private constructor(
    private readonly clock: Clock,
    private readonly of: Peer | undefined,
    private readonly take?: (bytes: Uint8Array | undefined, end: End) => void,
  ) {
    of?.open.add(this);
  }

  /** A connection between two processes, or between a process and a function that takes the bytes. */
  static pair(clock: Clock, of: Peer, other: Peer | ((bytes: Uint8Array | undefined, end: End) => void)): [End, End] {
    const near = new End(clock, of);
    const far = typeof other === "function" ? new End(clock, undefined, other) : new End(clock, other);
    near.other = far;
    far.other = near;
    return [near, far];
  }

  read(done: (answer: Uint8Array | undefined | Failure) => void): void {
    this.reading = done;
    this.answer();
  }

  write(bytes: Uint8Array): Failure | undefined {
    if (this.isClosed) return CLOSED;
    this.other.arrive(bytes.slice());
    return undefined;
  }

  close(): void {
    if (this.isClosed) return;
    this.isClosed = true;
    this.of?.open.delete(this);
    this.answer();
    this.other.arrive(undefined);
  }

  private arrive(bytes: Uint8Array | undefined): void {
    const taken = () => {
      if (this.take === undefined) this.arrived.push(bytes);
      else this.take(bytes, this);
      this.answer();
    };
    const turn = () => (this.of === undefined ? taken() : this.of.turn(taken));
    this.clock.set(turn, LATENCY_MS, this.of);
  }

  private answer(): void {
    const { reading } = this;
    // What a process awaits goes on in a turn of its own.
    if (this.of?.isDead || reading === undefined || (this.arrived.length === 0 && !this.isClosed)) return;
    this.reading = undefined;
    const [bytes] = this.arrived;
    // The end of the stream stays.
    if (bytes !== undefined) this.arrived.shift();
    reading(bytes === undefined && this.arrived.length === 0 ? CLOSED : bytes);
  }
}

const decoder = new TextDecoder();
const encoder = new TextEncoder();

export interface Request {
  readonly method: string;
  readonly path: string;
  readonly token: string | undefined;
}

/** Calls back for each HTTP request that arrives at a server's end. */
export function requests(
  taken: (request: Request, end: End) => void,
): (bytes: Uint8Array | undefined, end: End) => void {
  let text = "";
  return (bytes, end) => {
    if (bytes === undefined) end.close();
    else text += decoder.decode(bytes);
    for (let head = text.indexOf("\r\n\r\n"); head >= 0; head = text.indexOf("\r\n\r\n")) {
      const lines = text.slice(0, head);
      const size = Number(/content-length: (\d+)/i.exec(lines)?.[1] ?? 0);
      if (text.length < head + 4 + size) return;
      text = text.slice(head + 4 + size);
      const [method = "", path = ""] = lines.split(" ");
      taken({ method, path, token: /authorization: Bearer (\S+)/i.exec(lines)?.[1] }, end);
    }
  };
}

export function respond(end: End, status: number, body: string): void {
  const size = Buffer.byteLength(body);
  const head = `HTTP/1.1 ${status} Status\r\ncontent-length: ${size}\r\ncontent-type: application/json\r\n\r\n`;
  end.write(encoder.encode(head + body));
}
