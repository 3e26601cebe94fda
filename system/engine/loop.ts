/** The event loop of a program: promises, timers, and a table of polled descriptors. */
import { concat } from "../../host/bytes";
import { checked, Errno } from "../../host/errno";
import { Poll } from "../../host/files";
import { host } from "./host";
import { type Timer, Timers } from "./timers";

const timers = new Timers(() => host.elapsed());

/** Runs a callback later. */
export const setTimer = (run: () => void, milliseconds: number): Timer => timers.set(run, milliseconds);
export const clearTimer = (timer: Timer): void => timers.clear(timer);

interface Waiting {
  readonly happened: () => void;
  /** Its index in {@link table}; -1 if it no longer waits. */
  slot: number;
}

/**
 * Every `struct pollfd` as two numbers: the descriptor; the requested events and, in the upper half, the returned
 * events. The first entry is for signals, -1 without any.
 */
let table = Int32Array.of(-1, Poll.input);
const waiting: (Waiting | undefined)[] = [undefined];

function add(one: Waiting, descriptor: number, events: number): void {
  one.slot = waiting.push(one) - 1;
  if (table.length < waiting.length * 2) {
    const larger = new Int32Array(waiting.length * 4);
    larger.set(table);
    table = larger;
  }
  table[one.slot * 2] = descriptor;
  table[one.slot * 2 + 1] = events;
}

/** The last entry replaces it. */
function remove(one: Waiting): void {
  const { slot } = one;
  if (slot < 0) return;
  one.slot = -1;
  const last = waiting.pop() as Waiting;
  if (last === one) return;
  table.copyWithin(slot * 2, last.slot * 2, last.slot * 2 + 2);
  waiting[slot] = last;
  last.slot = slot;
}

/**
 * Calls back once a descriptor is readable or its other side is closed.
 * @returns stops waiting; call it before you close the descriptor
 */
export function onReadable(descriptor: number, callback: () => void): () => void {
  const one: Waiting = {
    slot: -1,
    happened: () => {
      remove(one);
      callback();
    },
  };
  add(one, descriptor, Poll.input);
  return () => remove(one);
}

/**
 * Resolves once a descriptor is readable (or its other side is closed) or writable. Before a descriptor is closed, its
 * waiters must be ended by the signal; this then rejects with the signal's reason.
 */
export function ready(descriptor: number, events: "read" | "write", signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = () => {
      remove(one);
      reject(signal?.reason);
    };
    const one: Waiting = {
      slot: -1,
      happened: () => {
        remove(one);
        signal?.removeEventListener("abort", abort);
        resolve();
      },
    };
    signal?.addEventListener("abort", abort, { once: true });
    add(one, descriptor, events === "read" ? Poll.input : Poll.output);
  });
}

/** Numbers of signals that x64 and arm64 share, from the kernel's asm-generic/signal.h. */
export const Signals = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGILL: 4,
  SIGTRAP: 5,
  SIGABRT: 6,
  SIGBUS: 7,
  SIGFPE: 8,
  SIGKILL: 9,
  SIGSEGV: 11,
  SIGPIPE: 13,
  SIGALRM: 14,
  SIGTERM: 15,
  SIGCHLD: 17,
  SIGXCPU: 24,
  SIGXFSZ: 25,
  SIGSYS: 31,
} as const;

const SIG_BLOCK = 0;
/** Of `struct signalfd_siginfo`, whose first member is the signal's number. */
const SIGNAL_SIZE = 128;
const SIGNALFD_FLAGS = 0x80800; // SFD_CLOEXEC, SFD_NONBLOCK

const callbacks = new Map<number, () => void>();

const signalsDescriptor = () => table[0] ?? -1;

/** Calls back for each later signal of a kind, instead of its default action. */
export function onSignal(signal: number, callback: () => void): void {
  callbacks.set(signal, callback);
  let mask = 0;
  for (const number of callbacks.keys()) mask |= 1 << (number - 1);
  const bytes = new Uint8Array(Uint32Array.of(mask, 0).buffer);
  checked("block signals", host.sigprocmask(SIG_BLOCK, bytes, bytes.length));
  table[0] = checked("take signals", host.signalfd(signalsDescriptor(), bytes, SIGNALFD_FLAGS));
}

function takeSignals(): void {
  const taken = new Uint32Array(SIGNAL_SIZE / 4);
  while (host.read(signalsDescriptor(), new Uint8Array(taken.buffer)) === SIGNAL_SIZE) {
    callbacks.get(taken[0] ?? 0)?.();
    host.runJobs();
  }
}

/** Whether the last poll has found an event. */
const hasHappened = (slot: number) => (table[slot * 2 + 1] ?? 0) >>> 16 !== 0;

/** Waits for the next descriptor or signal, for a maximum of milliseconds. */
function poll(milliseconds: number): void {
  const bytes = new Uint8Array(table.buffer, 0, waiting.length * 8);
  let left = checked("poll", host.pollAll(bytes, milliseconds));
  const isSignalled = hasHappened(0);
  const happened: Waiting[] = [];
  for (let slot = 0; left > 0; slot++) {
    if (!hasHappened(slot)) continue;
    left--;
    const one = waiting[slot];
    if (one !== undefined) happened.push(one);
  }
  for (const one of happened) {
    // Another may have ended it.
    if (one.slot < 0) continue;
    one.happened();
    // What this one began comes to its end first: thousands at once would take the memory of all.
    host.runJobs();
  }
  if (isSignalled) takeSignals();
}

/**
 * Runs a program and ends the process with its status. A rejection, also of any unhandled promise, ends the process
 * with a message and status 1.
 */
export function run(main: () => Promise<number>): never {
  let status: number | undefined;
  void main().then((ended) => {
    status = ended;
  });
  for (;;) {
    host.runJobs();
    timers.runDue(() => host.runJobs());
    if (status !== undefined) host.exit(status);
    const left = timers.untilNext();
    if (left === undefined && waiting.length === 1 && signalsDescriptor() < 0)
      throw new Error("the program waits for nothing and has not ended");
    poll(left ?? Number.POSITIVE_INFINITY);
  }
}

const PR_SET_PDEATHSIG = 1;
const O_CLOEXEC = 0x80000;
const WNOHANG = 1;
const LAST_DESCRIPTOR = 2 ** 32 - 1;
/** Descriptors that may be open if the kernel (before 5.9) does not close ranges. */
const MANY = 4096;
const CHUNK = 64 * 1024;

/** The result message of a child, as JSON. */
type Answer =
  | { readonly value?: unknown }
  | { readonly error: { readonly message: string; readonly code?: string | undefined } };

/** Closes descriptors that the child does not need, because others wait for the end of a pipe or connection. */
function closeAllBut(kept: number): void {
  host.closeRange(3, kept - 1);
  if (host.closeRange(kept + 1, LAST_DESCRIPTOR) !== -Errno.ENOSYS) return;
  for (let descriptor = 3; descriptor < MANY; descriptor++) if (descriptor !== kept) host.close(descriptor);
}

function answerOf(work: () => unknown): Answer {
  try {
    return { value: work() };
  } catch (error) {
    if (!(error instanceof Error)) return { error: { message: String(error) } };
    const { message, code } = error as Error & { readonly code?: string };
    return { error: { message, code } };
  }
}

/** The child's part: it never returns. */
function beChild(work: () => unknown, out: number): never {
  host.prctl(PR_SET_PDEATHSIG, Signals.SIGKILL);
  closeAllBut(out);
  let bytes = host.encode(JSON.stringify(answerOf(work)));
  for (let written = 0; written >= 0 && bytes.length > 0; bytes = bytes.subarray(Math.max(0, written)))
    written = host.write(out, bytes);
  host.exit(0);
}

async function readToEnd(descriptor: number, signal: AbortSignal): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for (;;) {
    await ready(descriptor, "read", signal);
    const into = new Uint8Array(CHUNK);
    const size = checked("read a child's answer", host.read(descriptor, into));
    if (size === 0) return concat(parts);
    parts.push(into.slice(0, size));
  }
}

const reap = () => {
  const status = new Uint8Array(8);
  while (host.wait(-1, status, WNOHANG) > 0);
};

/**
 * Runs a function in a child process and returns its result by way of JSON, so that a slow system call does not block
 * other work. The child has a copy of the memory, and only the three standard descriptors; it ends with this process,
 * and at the time limit, although a system call may continue.
 * @param timeoutMs default: no limit
 * @throws the function's error, with its message and code; with code ETIMEDOUT at the time limit
 */
export async function inChild<T>(work: () => T, { timeoutMs }: { readonly timeoutMs?: number } = {}): Promise<T> {
  if (!callbacks.has(Signals.SIGCHLD)) onSignal(Signals.SIGCHLD, reap);
  const ends = new Int32Array(2);
  checked("make a pipe", host.pipe(new Uint8Array(ends.buffer), O_CLOEXEC));
  const [from = -1, to = -1] = ends;
  const child = host.fork();
  if (child === 0) beChild(work, to);
  host.close(to);
  const end = new AbortController();
  const kill = () => {
    host.kill(child, Signals.SIGKILL);
    end.abort(Object.assign(new Error(`ETIMEDOUT: no answer within ${timeoutMs} ms`), { code: "ETIMEDOUT" }));
  };
  const timer = timeoutMs === undefined || child < 0 ? undefined : setTimeout(kill, timeoutMs);
  try {
    checked("start a process", child);
    const text = host.decode(await readToEnd(from, end.signal));
    if (text === "") throw new Error("a child process ended without an answer");
    const made = JSON.parse(text) as Answer;
    if (!("error" in made)) return made.value as T;
    const { message, ...rest } = made.error;
    throw Object.assign(new Error(message), rest);
  } finally {
    clearTimeout(timer);
    host.close(from);
  }
}
