/** The current process. */
import { writeAll } from "../host/files";
import { host } from "./engine/host";
import { onSignal, run, Signals } from "./engine/loop";

const STDOUT = 1;

/** Command line after the program's name. */
export const args: readonly string[] = host.args();

/** Splits `NAME=value`; a value may contain `=`. */
function pair(variable: string): readonly [string, string] {
  const at = variable.indexOf("=");
  return [variable.slice(0, at), variable.slice(at + 1)];
}

export const environment: Readonly<Record<string, string | undefined>> = Object.fromEntries(
  host.environment().map(pair),
);

/** Writes to stdout. Never throws. */
export function write(text: string): void {
  writeAll(host, STDOUT, text);
}

/** Ends the program with a message if its memory exceeds this number of bytes. @default 256 MiB */
export const limitMemory = (bytes: number): void => host.limitMemory(bytes);

/** Calls back at each SIGTERM and SIGINT, which then no longer end the process. */
export function onStop(stop: () => void): void {
  onSignal(Signals.SIGTERM, stop);
  onSignal(Signals.SIGINT, stop);
}

/** Runs a program, and ends the process with its exit status. It must not reject. */
export const start: (main: () => Promise<number>) => void = run;
