/** Child processes by the C host, with child.ts's interface. */

import { Errno, errnoName } from "../host/errno";
import type { HostRun } from "../host/port";
import type { Ended, RunOptions } from "./child";
import { host } from "./engine/host";
import { inChild, Signals } from "./engine/loop";

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
    const { code } = error as { readonly code?: string };
    const how = code === "ETIMEDOUT" ? { signal: "SIGKILL", timedOut: true } : { error: code ?? "EIO" };
    return { ...how, stdout: "", stderr: "" };
  }
}

export const apart: <T>(work: () => T) => Promise<T> = inChild;
