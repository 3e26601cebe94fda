/** Child processes. */
import { codeOf } from "../cni/errors";
import { Errno, errnoName } from "../host/errno";
import type { HostRun } from "../host/port";
import { host } from "./engine/host";
import { inChild, Signals } from "./engine/loop";

export interface RunOptions {
  /** Its whole environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Directory in which it starts. */
  readonly cwd: string;
  /** Milliseconds after which SIGKILL ends it. */
  readonly timeoutMs: number;
  /** Maximum bytes on stdout or stderr, beyond which SIGKILL ends it. */
  readonly maxBytes: number;
}

/** The end of a program: an exit, a signal, or a failed start. */
export interface Ended {
  /** Its exit status. */
  readonly code?: number;
  /** Name of the signal that ended it: `SIGSEGV`. */
  readonly signal?: string;
  /** Name of the errno with which the kernel refused to start it: `ENOEXEC`. */
  readonly error?: string;
  readonly timedOut?: boolean;
  readonly tooMuch?: boolean;
  /** As UTF-8; what it printed before it was ended, as far as that was read. */
  readonly stdout: string;
  readonly stderr: string;
}

const signalName = (number: number): string =>
  Object.entries(Signals).find(([, each]) => each === number)?.[0] ?? `SIG${number}`;

/** Additional time to start and to end a program, since a disk may not answer. */
const GRACE_MS = 2_000;

function endedBy(
  { status, signal, error, stdout, stderr }: HostRun,
  maxBytes: number,
): Omit<Ended, "stdout" | "stderr"> {
  if (error === -Errno.ETIMEDOUT) return { signal: "SIGKILL", timedOut: true };
  const isTooMuch = [stdout, stderr].some((text) => host.encode(text).length > maxBytes);
  if (error === -Errno.EFBIG || isTooMuch) return { signal: "SIGKILL", tooMuch: true };
  if (error !== 0) return { error: errnoName(-error) };
  return status === null ? { signal: signalName(signal ?? 0) } : { code: status };
}

/** Runs a program without input, and waits for its end. Never rejects. @param program an absolute path */
export async function run(program: string, args: readonly string[], options: RunOptions): Promise<Ended> {
  const { env, cwd, timeoutMs, maxBytes } = options;
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const nothing = { status: null, stdout: "", stderr: "" };
  const work = (): HostRun => {
    const error = host.chdir(cwd);
    return error < 0 ? { ...nothing, error } : host.run(program, args, "", variables, timeoutMs);
  };
  try {
    const made = await inChild(work, { timeoutMs: timeoutMs + GRACE_MS });
    return { ...endedBy(made, maxBytes), stdout: made.stdout, stderr: made.stderr };
  } catch (error) {
    const code = codeOf(error) ?? "EIO";
    const how = code === "ETIMEDOUT" ? { signal: "SIGKILL", timedOut: true } : { error: code };
    return { ...how, stdout: "", stderr: "" };
  }
}

/**
 * Runs a function that may take minutes on a slow disk, such as a change of a file, without blocking the process: it
 * runs in a child process, and only its result comes back, by way of JSON. @throws the function's error, with
 * message and code
 */
export const apart: <T>(work: () => T) => Promise<T> = inChild;
