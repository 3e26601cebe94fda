/** The current process by the C host, with program.ts's interface. */
import { writeAll } from "../host/files";
import { host } from "./engine/host";
import { onSignal, run, Signals } from "./engine/loop";

const STDOUT = 1;

export const args: readonly string[] = host.args();

/** Splits `NAME=value`; a value may contain `=`. */
function pair(variable: string): readonly [string, string] {
  const at = variable.indexOf("=");
  return [variable.slice(0, at), variable.slice(at + 1)];
}

export const environment: Readonly<Record<string, string | undefined>> = Object.fromEntries(
  host.environment().map(pair),
);

export function write(text: string): void {
  writeAll(host, STDOUT, text);
}

export const limitMemory = (bytes: number): void => host.limitMemory(bytes);

export function onStop(stop: () => void): void {
  onSignal(Signals.SIGTERM, stop);
  onSignal(Signals.SIGINT, stop);
}

export const start: (main: () => Promise<number>) => void = run;
