/** Programs of the built executable, as the image's containers run them. */
import { spawn } from "node:child_process";
import { outputs } from "../../build/paths";
import { buildPlugin, type PRODUCT } from "../../build/programs";

export type ProgramName = keyof typeof PRODUCT.programs;

/** Builds the executable for {@link startProgram}. */
export const buildPrograms = (): Promise<void> => buildPlugin();

export interface ProgramOptions {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Program that starts it, with arguments. @default none */
  readonly runner?: readonly string[];
  /** @default dist/bin/linkerd-cni */
  readonly executable?: string;
  /** Discards its output. @default false */
  readonly isSilent?: boolean;
}

/** Starts a program; its environment holds only the given variables. */
export function startProgram(name: ProgramName, options: ProgramOptions = {}) {
  const { args = [], env = {}, runner = [], executable = outputs.plugin, isSilent = false } = options;
  const [program = executable, ...rest] = [...runner, executable, name, ...args];
  const output = isSilent ? "ignore" : "pipe";
  return spawn(program, rest, { stdio: ["ignore", output, output], env });
}
