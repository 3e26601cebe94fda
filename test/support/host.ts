/** The C host of the plugin's executable, driven call by call. */
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildExecutable } from "../../build/engine";
import { root } from "../../build/paths";

/** A server at an address, whose chain the script judges, if necessary. */
export interface StepServer {
  readonly address: string;
  readonly port: number;
  /** That its certificate must be for. */
  readonly name: string;
  readonly ca: string;
}

/** A value, the result of an earlier step, bytes, or bytes of that size to be filled. */
export type Argument =
  | string
  | number
  | boolean
  | null
  | readonly string[]
  | StepServer
  | { readonly result: number }
  | { readonly bytes: readonly number[] }
  | { readonly size: number };

/** A function of the host, or one of host-steps/main.ts, and its arguments. */
export type Step = readonly [name: string, ...args: Argument[]];

export interface StepResult {
  readonly returned: unknown;
  /** The buffers that the call was given to fill. */
  readonly filled: readonly (readonly number[])[];
}

interface HostEnd {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface HostOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Runs as a program with what only the plugin lacks. @default as the plugin */
  readonly isLasting?: boolean;
  /** A shell's commands before the executable runs, such as `ulimit -s 64`. @default none */
  readonly before?: string;
  /** Program that runs that shell, with its arguments. @default none */
  readonly within?: readonly string[];
  /** Ends it. */
  readonly signal?: AbortSignal;
}

/** Whether the host is built with sanitizers, which report invalid memory accesses. */
export const sanitized = process.env["HOST_SANITIZED"] === "1";

export class HostProgram {
  private constructor(
    readonly directory: string,
    readonly executable: string,
  ) {}

  static async build(): Promise<HostProgram> {
    const directory = await mkdtemp(join(tmpdir(), "host-"));
    const executable = join(directory, "host");
    const steps = join(root, "test", "support", "host-steps");
    const main = join(steps, "main.ts");
    await buildExecutable(executable, { main, programs: { steps: main }, scripts: join(steps, "scripts"), sanitized });
    return new HostProgram(directory, executable);
  }

  async close(): Promise<void> {
    await rm(this.directory, { recursive: true });
  }

  /** Runs steps, and gives how the process ended. */
  async end(steps: readonly Step[] | string, options: HostOptions = {}): Promise<HostEnd> {
    const { env = {}, before = ":", within = [], isLasting = false } = options;
    const shell = `${before}; exec "$0" ${isLasting ? "steps" : ""}`;
    const [program = "", ...args] = [...within, "/bin/sh", "-c", shell, this.executable];
    const { signal } = options;
    const child = spawn(program, args, {
      env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", ...env },
      ...(signal === undefined ? {} : { signal }),
    });
    const texts = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const)
      child[name].setEncoding("utf8").on("data", (text: string) => {
        texts[name] += text;
      });
    // It may have ended before it read all of it.
    child.stdin.on("error", () => {});
    child.stdin.end(typeof steps === "string" ? steps : JSON.stringify(steps));
    return new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (status, signal) => resolve({ status, signal, ...texts }));
    });
  }

  /** Runs steps that must succeed. @returns what each returned and filled */
  async run(steps: readonly Step[], options: HostOptions = {}): Promise<readonly StepResult[]> {
    const { status, signal, stdout, stderr } = await this.end(steps, options);
    if (status !== 0 || stderr !== "") throw new Error(`the host ended with ${status ?? signal}: ${stderr}${stdout}`);
    return JSON.parse(stdout) as StepResult[];
  }

  /** The same. @returns what each returned */
  async returned(...steps: readonly Step[]): Promise<readonly unknown[]> {
    return (await this.run(steps, { isLasting: true })).map(({ returned }) => returned);
  }
}
