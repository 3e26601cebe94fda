/** The host's own programs: finds them, and runs them in the namespace that the process is in. */
import { Errno, SystemError } from "../../host/errno";
import type { Host } from "../../host/port";

/** Where distributions install them: the PATH of a runtime may be short. */
const USUAL = ["/usr/sbin", "/sbin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/local/bin"];
const TIMEOUT_MS = 10_000;

export interface ProgramRun {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Whether it printed more than is read, and was ended. */
  readonly isCut: boolean;
}

function directories(host: Host): readonly string[] {
  const given = (host.env("PATH") ?? "").split(":").filter((each) => each.startsWith("/"));
  return [...given, ...USUAL];
}

/** Path of a program in the directories of PATH or the usual ones. */
export function findProgram(host: Host, name: string): string | undefined {
  return directories(host)
    .map((directory) => `${directory}/${name}`)
    .find((candidate) => host.access(candidate) === 0);
}

export function runProgram(host: Host, program: string, args: readonly string[], input: string): ProgramRun {
  const env = [`PATH=${directories(host).join(":")}`];
  const { status, stdout, stderr, error } = host.run(program, args, input, env, TIMEOUT_MS);
  if (error === -Errno.EFBIG) return { status, stdout, stderr: "it prints more than 4 MiB", isCut: true };
  const problem = error === 0 ? "" : new SystemError(`run ${program}`, -error).message;
  return { status, stdout, stderr: `${stderr}${problem}`, isCut: false };
}
