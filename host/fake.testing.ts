/** A machine for tests: files, network namespaces, netfilter, programs and an installer, all in memory. */
import { ANSWER_HEADER, ANSWER_VERSION } from "../kubernetes/lookup-client";
import { FakeNetfilter } from "../netlink/fake.testing";
import { Errno } from "./errno";
import { Poll } from "./files";
import type { Host, HostRun } from "./port";

export const OWN_NAMESPACE = "/proc/self/ns/net";

/** The installer's whole response to a request's path. */
export type FakeApi = (path: string) => string;

export interface FakeMachine {
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string | Uint8Array;
  /** Texts by path. */
  readonly files?: Readonly<Record<string, string>>;
  /** When files and namespaces changed, in seconds since 1970. @default 0 */
  readonly changed?: Readonly<Record<string, number>>;
  /** Paths of network namespaces besides the plugin's own. */
  readonly namespaces?: readonly string[];
  /** The installer. @default nothing listens at its socket */
  readonly api?: FakeApi | undefined;
  /** Programs by path. */
  readonly programs?: Readonly<Record<string, (args: readonly string[], input: string) => HostRun>>;
  /** Receives netfilter datagrams instead of {@link FakeNetfilter}; negative: the negated errno of sending. */
  readonly netfilter?: (datagram: Uint8Array) => readonly Uint8Array[] | number;
}

interface Descriptor {
  readonly path: string;
  readonly bytes: Uint8Array;
  at: number;
}

/** Thrown instead of ending the process. */
class Exit extends Error {
  constructor(readonly status: number) {
    super(`exit ${status}`);
  }
}

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** An API server's response, passed on by the installer. */
export function response(status: number, body: string, headers = ""): string {
  const marked = `${ANSWER_HEADER}: ${ANSWER_VERSION}\r\n${headers}`;
  return `HTTP/1.1 ${status} Status\r\n${marked}Content-Length: ${encoder.encode(body).length}\r\n\r\n${body}`;
}

export class FakeHost implements Host {
  /** Every datagram sent to netfilter, with its namespace. */
  readonly sent: { readonly namespace: string; readonly datagram: Uint8Array }[] = [];
  /** Paths of the requests to the installer. */
  readonly requests: string[] = [];
  readonly ran: { readonly command: string; readonly input: string }[] = [];
  /** Milliseconds of sleep requested from {@link poll}. */
  readonly pauses: number[] = [];
  /** Removed files and directories, in order. */
  readonly unlinked: string[] = [];
  stdout = "";
  stderr = "";
  /** Milliseconds since the start; calls do not take time by themselves. */
  now = 0;
  private namespace = OWN_NAMESPACE;
  private readonly tables = new Map<string, FakeNetfilter>();
  private readonly descriptors = new Map<number, Descriptor>();
  private replies: Uint8Array[] = [];
  /** Sockets that are connected to the installer, with what it has sent. */
  private readonly lookups = new Map<number, Uint8Array>();
  private next = 3;

  constructor(private readonly machine: FakeMachine = {}) {
    const { stdin = "" } = machine;
    const bytes = typeof stdin === "string" ? encoder.encode(stdin) : stdin;
    this.descriptors.set(0, { path: "stdin", bytes, at: 0 });
    for (const path of [OWN_NAMESPACE, ...(machine.namespaces ?? [])]) this.tables.set(path, new FakeNetfilter());
  }

  env = (name: string) => this.machine.env?.[name];
  elapsed = () => this.now;
  encode = (text: string) => encoder.encode(text);
  decode = (bytes: Uint8Array) => decoder.decode(bytes);

  open(path: string): number {
    const text = this.machine.files?.[path] ?? (this.tables.has(path) ? "" : undefined);
    if (text === undefined) return -Errno.ENOENT;
    this.descriptors.set(this.next, { path, bytes: encoder.encode(text), at: 0 });
    return this.next++;
  }

  read(descriptor: number, into: Uint8Array): number {
    const file = this.descriptors.get(descriptor);
    if (file === undefined) return -Errno.EBADF;
    const part = file.bytes.subarray(file.at, file.at + into.length);
    into.set(part);
    file.at += part.length;
    return part.length;
  }

  write(descriptor: number, bytes: Uint8Array): number {
    if (descriptor === 1) this.stdout += this.decode(bytes);
    else if (descriptor === 2) this.stderr += this.decode(bytes);
    else return -Errno.EBADF;
    return bytes.length;
  }

  seek = (_descriptor: number) => 0;
  close(descriptor: number): number {
    return this.lookups.delete(descriptor) || this.descriptors.delete(descriptor) ? 0 : -Errno.EBADF;
  }

  unlink(path: string, flags: number): number {
    const left = Object.keys(this.machine.files ?? {}).filter((each) => !this.unlinked.includes(each));
    if (flags === 0 && !left.includes(path)) return -Errno.ENOENT;
    if (flags !== 0 && left.some((each) => each.startsWith(`${path}/`))) return -Errno.ENOTEMPTY;
    this.unlinked.push(path);
    return 0;
  }

  access(path: string): number {
    const isThere = path in (this.machine.programs ?? {}) || path in (this.machine.files ?? {});
    return isThere ? 0 : -Errno.ENOENT;
  }

  statx(path: string, _flags: number, _mask: number, into: Uint8Array): number {
    const open = /^\/proc\/self\/fd\/(\d+)$/.exec(path)?.[1];
    const file = open === undefined ? path : (this.descriptors.get(Number(open))?.path ?? "");
    const known = [...this.tables.keys(), ...Object.keys(this.machine.files ?? {})];
    if (!known.includes(file)) return -Errno.ENOENT;
    const view = new DataView(into.buffer, into.byteOffset, into.byteLength);
    view.setUint32(0x20, known.indexOf(file) + 1, true);
    view.setBigInt64(0x60, BigInt(this.machine.changed?.[file] ?? 0), true);
    view.setUint32(0x8c, this.tables.has(file) ? 4 : 1, true);
    return 0;
  }

  setns(descriptor: number): number {
    const path = this.descriptors.get(descriptor)?.path ?? "";
    if (!this.tables.has(path)) return -Errno.EINVAL;
    this.namespace = path;
    return 0;
  }

  socket = () => this.next++;
  connect(socket: number): number {
    if (this.machine.api === undefined) return -Errno.ECONNREFUSED;
    this.lookups.set(socket, new Uint8Array(0));
    return 0;
  }

  bind = () => 0;
  listen = () => 0;
  accept = () => -Errno.EAGAIN;
  setsockopt = () => 0;
  send(socket: number, datagram: Uint8Array): number {
    if (this.lookups.has(socket)) {
      const path = this.decode(datagram).split(" ")[1] ?? "";
      this.requests.push(path);
      this.lookups.set(socket, encoder.encode(this.machine.api?.(path)));
      return datagram.length;
    }
    this.sent.push({ namespace: this.namespace, datagram });
    const own = this.tables.get(this.namespace) ?? new FakeNetfilter();
    const replies = this.machine.netfilter?.(datagram) ?? own.exchange(datagram);
    if (typeof replies === "number") return replies;
    this.replies.push(...replies);
    return datagram.length;
  }

  receive(socket: number, into: Uint8Array): number {
    const sent = this.lookups.get(socket);
    if (sent !== undefined) {
      const part = sent.subarray(0, into.length);
      into.set(part);
      this.lookups.set(socket, sent.subarray(part.length));
      return part.length;
    }
    const reply = this.replies.shift();
    if (reply === undefined) return -Errno.EAGAIN;
    into.set(reply);
    return reply.length;
  }

  poll(descriptor: number, _events: number, milliseconds: number): number {
    if (this.lookups.has(descriptor)) return Poll.input;
    this.pauses.push(milliseconds);
    this.now += Math.max(0, milliseconds);
    return 0;
  }

  pollAll(_descriptors: Uint8Array, milliseconds: number): number {
    return this.poll(-1, 0, milliseconds);
  }

  run(program: string, args: readonly string[], input: string): HostRun {
    this.ran.push({ command: [program, ...args].join(" "), input });
    const play = this.machine.programs?.[program];
    return play?.(args, input) ?? { status: null, stdout: "", stderr: "", error: -Errno.ENOENT };
  }

  exit(status: number): never {
    throw new Exit(status);
  }
}
