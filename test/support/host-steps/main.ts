/** A script for the plugin's host: makes the calls that its input lists, in order, and prints the result of each. */
import type { Host, TlsServer } from "../../../host/port";
import { problemOf } from "../../../host/scripts/certificates";
import type { Argument, Step, StepResult } from "../host";

declare const host: Host;

const MEBIBYTE = 1024 * 1024;

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
      const sent = host.tlsSend(new Uint8Array(left), milliseconds);
      if (sent <= 0) return { sent: total - left, end: sent };
      left -= sent;
    }
    return { sent: total, end: 0 };
  },
  receiveAll: (milliseconds: number) => {
    const into = new Uint8Array(65_536);
    for (let received = 0; ; ) {
      const size = host.tlsReceive(into, milliseconds);
      if (size <= 0) return { received, end: size };
      received += size;
    }
  },
  /** Connects to each server, so many times; the last connection stays open. How many there were. */
  connectAll: (servers: readonly TlsServer[], times: number, milliseconds: number) => {
    let connected = 0;
    for (let time = 0; time < times; time++) {
      host.tlsClose();
      for (const server of servers) connected += host.tlsConnect(server, milliseconds) === undefined ? 1 : 0;
    }
    return connected;
  },
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
  if ("addresses" in value) return { ...value, judge: problemOf };
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
    const call = (name in host ? host[name as keyof Host] : others[name]) as (...args: unknown[]) => unknown;
    const made = call(...args.map((each) => argument(each, buffers)));
    const returned = made instanceof Uint8Array ? [...made] : made;
    results.push({ returned, filled: buffers.map((buffer) => [...buffer]) });
  }
  writeOutput(JSON.stringify(results));
  host.exit(0);
}

main();
