/** A script for the host: makes the calls that its input lists, in order, and prints the result of each. */
import { parseAddress } from "../../../cni/subnets";
import { Errno } from "../../../host/errno";
import { Poll } from "../../../host/files";
import type { LastingHost, TlsConnection, TlsFailure, TlsWants } from "../../../host/port";
import { problemOf } from "../../../host/scripts/certificates";
import { beginConnection } from "../../../host/sockets";
import type { Argument, Step, StepResult, StepServer } from "../host";

declare const host: LastingHost;

const MEBIBYTE = 1024 * 1024;
const SOL_SOCKET = 1;
const SO_ERROR = 4;
const ENOTCONN = 107;

function readInput(): string {
  let input = new Uint8Array(MEBIBYTE);
  let size = 0;
  for (;;) {
    const taken = host.read(0, input.subarray(size));
    if (taken <= 0) return host.decode(input.subarray(0, size));
    size += taken;
    if (size < input.length) continue;
    const larger = new Uint8Array(input.length * 2);
    larger.set(input);
    input = larger;
  }
}

function writeOutput(text: string): void {
  let bytes = host.encode(text);
  while (bytes.length > 0) bytes = bytes.subarray(Math.max(0, host.write(1, bytes)));
}

/** The last encrypted connection, and its socket. */
let only: { readonly socket: number; readonly connection: TlsConnection } | undefined;

/** Waits for an event of a socket; the negated errno if the time is over. */
function waited(socket: number, wants: TlsWants, end: number): number {
  const left = end - host.elapsed();
  const events = wants === "read" ? Poll.input : Poll.output;
  return left <= 0 || host.poll(socket, events, left) === 0 ? -Errno.ETIMEDOUT : 0;
}

function addressOf(text: string): Uint8Array {
  return Uint8Array.from(parseAddress(text) ?? []);
}

/** Connects to a server, and completes a verified handshake. */
function connect({ address, port, name, ca }: StepServer, milliseconds: number): TlsFailure | undefined {
  const end = host.elapsed() + milliseconds;
  const failed = (error: number): TlsFailure => ({ step: "connect", error, text: "" });
  const socket = beginConnection(host, addressOf(address), port);
  if (waited(socket, "write", end) !== 0) return failed(-Errno.ETIMEDOUT);
  const error = new Int32Array(1);
  host.getsockopt(socket, SOL_SOCKET, SO_ERROR, new Uint8Array(error.buffer));
  if (error[0] !== 0) return failed(-(error[0] ?? 0));
  const connection = host.tlsClient(socket, name, ca);
  if ("step" in connection) return connection;
  for (;;) {
    const result = host.tlsHandshake(connection, problemOf);
    if (result === undefined) only = { socket, connection };
    if (typeof result !== "string") return result;
    if (waited(socket, result, end) !== 0) return { step: "handshake", error: -Errno.ETIMEDOUT, text: "" };
  }
}

/** Moves bytes, and waits as long as it may. */
function moved(move: (connection: TlsConnection) => number | TlsWants, milliseconds: number): number {
  if (only === undefined) return -ENOTCONN;
  const end = host.elapsed() + milliseconds;
  for (;;) {
    const result = move(only.connection);
    if (typeof result === "number") return result;
    const error = waited(only.socket, result, end);
    if (error !== 0) return error;
  }
}

const send = (bytes: Uint8Array, milliseconds: number) => moved((each) => host.tlsWrite(each, bytes), milliseconds);
const receive = (into: Uint8Array, milliseconds: number) => moved((each) => host.tlsRead(each, into), milliseconds);

function close(): void {
  if (only !== undefined) host.tlsEnd(only.connection);
  only = undefined;
}

/** Steps that are not calls of the host. */
const others: Readonly<Record<string, (...args: never[]) => unknown>> = {
  double: (value: number) => (host.load("double" as never) as { double(value: number): number }).double(value),
  throwIt: (message: string) => {
    throw new Error(message);
  },
  overflow: () => {
    const deeper = (depth: number): number => 1 + deeper(depth + 1);
    return deeper(0);
  },
  fillMemory: () => {
    const held: Uint8Array[] = [];
    for (;;) held.push(new Uint8Array(MEBIBYTE));
  },
  fillMemoryBySmallObjects: () => {
    const held: object[] = [];
    for (;;) held.push({ held: held.length });
  },
  parse: (text: string) => typeof JSON.parse(text),
  nested: (depth: number) => typeof JSON.parse("[".repeat(depth) + "]".repeat(depth)),
  repeated: (text: string, times: number) => text.repeat(times),
  /** Sends so many bytes; fewer if a call fails. */
  sendAll: (total: number, milliseconds: number) => {
    for (let left = total; left > 0; ) {
      const sent = send(new Uint8Array(left), milliseconds);
      if (sent <= 0) return { sent: total - left, end: sent };
      left -= sent;
    }
    return { sent: total, end: 0 };
  },
  receiveAll: (milliseconds: number) => {
    const into = new Uint8Array(65_536);
    for (let received = 0; ; ) {
      const size = receive(into, milliseconds);
      if (size <= 0) return { received, end: size };
      received += size;
    }
  },
  tlsConnect: connect,
  tlsSend: send,
  tlsReceive: receive,
  tlsClose: close,
  loneSurrogate: () => `\ud800a\udc00`,
  caught: (name: string) => {
    try {
      return others[name]?.();
    } catch (error) {
      return String(error);
    }
  },
};

const results: StepResult[] = [];

/** An argument as the call takes it; bytes that it fills are printed after it. */
function argument(value: Argument, buffers: Uint8Array[]): unknown {
  if (Array.isArray(value)) return value.map((each) => argument(each, buffers));
  if (value === null || typeof value !== "object") return value;
  if ("result" in value) {
    const { returned } = results[value.result] as StepResult;
    return returned;
  }
  if ("bytes" in value) return new Uint8Array(value.bytes);
  if ("size" in value) {
    const buffer = new Uint8Array(value.size);
    buffers.push(buffer);
    return buffer;
  }
  return value;
}

function main(): void {
  const steps = JSON.parse(readInput()) as readonly Step[];
  for (const [name, ...args] of steps) {
    if (name === "end") return;
    const buffers: Uint8Array[] = [];
    const call = (name in host ? host[name as keyof LastingHost] : others[name]) as (...args: unknown[]) => unknown;
    const made = call(...args.map((each) => argument(each, buffers)));
    const returned = made instanceof Uint8Array ? [...made] : made;
    results.push({ returned, filled: buffers.map((buffer) => [...buffer]) });
  }
  writeOutput(JSON.stringify(results));
  host.exit(0);
}

main();
