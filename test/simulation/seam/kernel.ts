/**
 * What the simulated machine gives to a process: the modules beside this one call it where Node's would ask the kernel. It
 * calls back, since a promise of the simulation would wait for the wrong process.
 */
import type { Ended } from "../../../system/child";

export interface Failure {
  readonly failure: { readonly message: string; readonly code: string };
}

/** One end of a connection. */
export interface Socket {
  read(done: (answer: Uint8Array | undefined | Failure) => void): void;
  write(bytes: Uint8Array): Failure | undefined;
  close(): void;
}

export interface Target {
  /** Of a Unix socket; else the API server. */
  readonly path?: string;
  readonly deadlineMs: number;
}

export interface Kernel {
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly random: () => number;
  /** Milliseconds. */
  now(): number;
  setTimer(callback: () => void, ms: number): { isCleared: boolean };
  /** A call of `node:fs`. @throws {code, message} */
  file(name: string, ...args: readonly unknown[]): unknown;
  /** Calls back when another process opens a directory. @returns ends the watch */
  onOpened(directory: string, opened: () => void): () => void;
  execute(program: string, done: (ended: Ended) => void): void;
  connect(target: Target, done: (answer: Socket | Failure) => void): { abort(): void };
  listen(at: string | number, taken: (socket: Socket) => void): { readonly port: number; close(): void };
  onStop(stop: () => void): void;
  write(text: string): void;
  exit(code: number): void;
}

/** Of the process that runs. */
export let kernel: Kernel;

export function enter(of: Kernel): void {
  kernel = of;
}
