import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** The failure of a program, with its output. */
export class ProgramError extends Error {
  constructor(
    program: string,
    readonly stderr: string,
    readonly stdout: string,
    cause: unknown,
  ) {
    const lines = stderr.split("\n").filter((line) => line.trim() !== "");
    const isMissing = (cause as NodeJS.ErrnoException).code === "ENOENT";
    // npm begins each line so, and the first one with a code.
    const said = lines.find((line) => /^(npm )?error\b(?! code)/i.test(line)) ?? lines.at(-1) ?? String(cause);
    super(isMissing ? `${program} is not installed` : `${program}: ${said.replace(/^(npm )?error:?\s*/i, "")}`, {
      cause,
    });
  }
}

/** Runs a program to its end. @returns its output @throws a {@link ProgramError} if it fails */
export async function execute(
  program: string,
  args: readonly string[],
  options: { readonly cwd?: string } = {},
): Promise<Buffer> {
  const running = run(program, [...args], { maxBuffer: 1 << 24, ...options, encoding: "buffer" });
  // Programs must not ask questions, since their output is not shown.
  running.child.stdin?.end();
  try {
    return (await running).stdout;
  } catch (error) {
    const { stderr, stdout } = error as { readonly stderr?: Buffer; readonly stdout?: Buffer };
    throw new ProgramError(program, stderr?.toString() ?? "", stdout?.toString() ?? "", error);
  }
}
