/** A machine for tests: files, network namespaces, netfilter, programs and an API server, all in memory. */
import { FakeNetfilter } from "../netlink/fake.testing";
import { Errno } from "./errno";
import type { Host, HostRun, Scripts, TlsFailure, TlsServer } from "./port";

export const OWN_NAMESPACE = "/proc/self/ns/net";

/** The API server's whole response to a request's path, or why the connection fails. */
export type FakeApi = (path: string) => string | TlsFailure;

export interface FakeMachine {
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string | Uint8Array;
  /** Texts by path. */
  readonly files?: Readonly<Record<string, string>>;
  /** When files and namespaces changed, in seconds since 1970. @default 0 */
  readonly changed?: Readonly<Record<string, number>>;
  /** Paths of network namespaces besides the plugin's own. */
  readonly namespaces?: readonly string[];
  readonly api?: FakeApi;
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

/** A response of an API server. */
export function response(status: number, body: string, headers = ""): string {
  return `HTTP/1.1 ${status} Status\r\n${headers}Content-Length: ${encoder.encode(body).length}\r\n\r\n${body}`;
}

export class FakeHost implements Host {
  /** Every datagram sent to netfilter, with its namespace. */
  readonly sent: { readonly namespace: string; readonly datagram: Uint8Array }[] = [];
  readonly servers: TlsServer[] = [];
  /** Paths of the requests to the API server. */
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
  private incoming: Uint8Array | undefined;
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
  base64(text: string) {
    const isValid = /^[A-Za-z0-9+/_-]*={0,2}$/.test(text);
    return isValid ? new Uint8Array(Buffer.from(text, "base64")) : -Errno.EINVAL;
  }

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
  close = (descriptor: number) => (this.descriptors.delete(descriptor) ? 0 : -Errno.EBADF);
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
  connect = () => -Errno.ENOENT;
  bind = () => 0;
  listen = () => 0;
  accept = () => -Errno.EAGAIN;
  setsockopt = () => 0;
  send(_socket: number, datagram: Uint8Array): number {
    this.sent.push({ namespace: this.namespace, datagram });
    const own = this.tables.get(this.namespace) ?? new FakeNetfilter();
    const replies = this.machine.netfilter?.(datagram) ?? own.exchange(datagram);
    if (typeof replies === "number") return replies;
    this.replies.push(...replies);
    return datagram.length;
  }

  receive(_socket: number, into: Uint8Array): number {
    const reply = this.replies.shift();
    if (reply === undefined) return -Errno.EAGAIN;
    into.set(reply);
    return reply.length;
  }

  poll(_descriptor: number, _events: number, milliseconds: number): number {
    this.pauses.push(milliseconds);
    this.now += Math.max(0, milliseconds);
    return 0;
  }

  pollAll(_descriptors: Uint8Array, milliseconds: number): number {
    return this.poll(-1, 0, milliseconds);
  }

  resolve = (name: string) => (name === "localhost" ? ["127.0.0.1"] : -Errno.ENOENT);

  tlsConnect(server: TlsServer): TlsFailure | undefined {
    this.servers.push(server);
    const answer = this.machine.api?.("");
    if (answer === undefined) return { step: "connect", error: -Errno.ECONNREFUSED, text: "" };
    return typeof answer === "string" ? undefined : answer;
  }

  tlsSend(bytes: Uint8Array): number {
    const path = this.decode(bytes).split(" ")[1] ?? "";
    this.requests.push(path);
    const answer = this.machine.api?.(path) ?? "";
    if (typeof answer !== "string") return answer.error;
    this.incoming = encoder.encode(answer);
    return bytes.length;
  }

  tlsReceive(into: Uint8Array): number {
    const part = (this.incoming ?? new Uint8Array(0)).subarray(0, into.length);
    into.set(part);
    this.incoming = this.incoming?.subarray(part.length);
    return part.length;
  }

  tlsClose(): void {
    this.incoming = undefined;
  }

  run(program: string, args: readonly string[], input: string): HostRun {
    this.ran.push({ command: [program, ...args].join(" "), input });
    const play = this.machine.programs?.[program];
    return play?.(args, input) ?? { status: null, stdout: "", stderr: "", error: -Errno.ENOENT };
  }

  load<Name extends keyof Scripts>(name: Name): Scripts[Name] {
    return require(`./scripts/${name}`) as Scripts[Name];
  }

  exit(status: number): never {
    throw new Exit(status);
  }
}
