/** Child processes: by Node here, by the C host in child.engine.ts. */
import { execFile } from "node:child_process";

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

interface Failure {
  readonly code?: number | string | null;
  readonly signal?: string | null;
  readonly killed?: boolean;
}

function endedBy({ code, signal, killed }: Failure): Omit<Ended, "stdout" | "stderr"> {
  if (code === "ERR_CHILD_PROCESS_STDIO_MAXBUFFER") return { signal: "SIGKILL", tooMuch: true };
  if (typeof code === "string") return { error: code };
  if (killed === true) return { signal: signal ?? "SIGKILL", timedOut: true };
  return typeof signal === "string" ? { signal } : { code: code ?? 0 };
}

/** Runs a program without input, and waits for its end. Never rejects. @param program an absolute path */
export function run(program: string, args: readonly string[], options: RunOptions): Promise<Ended> {
  const { env, cwd, timeoutMs: timeout, maxBytes: maxBuffer } = options;
  return new Promise((resolve) => {
    try {
      const settings = { env, cwd, timeout, maxBuffer, killSignal: "SIGKILL" } as const;
      const child = execFile(program, [...args], settings, (error, stdout, stderr) =>
        resolve({ ...endedBy(error ?? {}), stdout, stderr }),
      );
      // A program that does not read its input may end before the input is closed.
      child.stdin?.on("error", () => undefined).end();
    } catch (error) {
      // Some errors are thrown synchronously.
      resolve({ ...endedBy(error as Failure), stdout: "", stderr: "" });
    }
  });
}

/**
 * Runs a function that may take minutes on a slow disk, such as a change of a file, without blocking the process: the
 * engine runs it in a child process, and only its result comes back, by way of JSON. @throws the function's error, with
 * message and code
 */
export const apart = async <T>(work: () => T): Promise<T> => work();
