/** Child processes as of system/child.ts, by Node. */
import { execFile } from "node:child_process";
import type { Ended, RunOptions } from "../../../system/child";

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

export const apart = async <T>(work: () => T): Promise<T> => work();
