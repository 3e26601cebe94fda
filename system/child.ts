/** Programs that run and end: by Node here, by the C host in child.engine.ts. */
import { execFile } from "node:child_process";

export interface RunOptions {
  /** All that its environment holds. */
  readonly env: Readonly<Record<string, string>>;
  /** Directory in which it starts. */
  readonly cwd: string;
  /** After these milliseconds it is ended by SIGKILL. */
  readonly timeoutMs: number;
  /** The same once it has printed more than these bytes, on stdout or on stderr. */
  readonly maxBytes: number;
}

/** How a program ended: by exit or by a signal, or it did not start. */
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

/** Runs a program with nothing to read, and waits until it has ended. Never rejects. @param program an absolute path */
export function run(program: string, args: readonly string[], options: RunOptions): Promise<Ended> {
  const { env, cwd, timeoutMs: timeout, maxBytes: maxBuffer } = options;
  return new Promise((resolve) => {
    try {
      const settings = { env, cwd, timeout, maxBuffer, killSignal: "SIGKILL" } as const;
      const child = execFile(program, [...args], settings, (error, stdout, stderr) =>
        resolve({ ...endedBy(error ?? {}), stdout, stderr }),
      );
      // A program that reads nothing has ended before it is told that there is nothing.
      child.stdin?.on("error", () => undefined).end();
    } catch (error) {
      // Some errors are told at once.
      resolve({ ...endedBy(error as Failure), stdout: "", stderr: "" });
    }
  });
}
