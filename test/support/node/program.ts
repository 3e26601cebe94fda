/** The current process as of system/program.ts, by Node. */

/** Command line after the program's name. */
export const args: readonly string[] = process.argv.slice(2);

export const environment: Readonly<Record<string, string | undefined>> = process.env;

// A closed log must not end the program.
process.stdout.on("error", () => undefined);

/** Writes to stdout. Never throws. */
export function write(text: string): void {
  process.stdout.write(text);
}

/** Has no effect. */
export function limitMemory(_bytes: number): void {}

/** Calls back at each SIGTERM and SIGINT, which then no longer end the process. */
export function onStop(stop: () => void): void {
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
}

/** Runs a program, and ends the process with its exit status. It must not reject. */
export function start(main: () => Promise<number>): void {
  void main().then((code) => process.exit(code));
}
