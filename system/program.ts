/** The process that a program is: by Node here, by the C host in program.engine.ts. */

/** Command line after the program's name. */
export const args: readonly string[] = process.argv.slice(2);

export const environment: Readonly<Record<string, string | undefined>> = process.env;

// If the reader of the log is gone, the program still has its work to do.
process.stdout.on("error", () => undefined);

/** Writes to stdout. Never throws. */
export function write(text: string): void {
  process.stdout.write(text);
}

/**
 * Ends the program with a message once its memory takes more bytes than this. By Node it has no effect.
 * @default 256 MiB
 */
export function limitMemory(_bytes: number): void {}

/** Calls back at each SIGTERM and SIGINT; from then on no such signal ends the process by itself. */
export function onStop(stop: () => void): void {
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
}

/** Runs a program, and ends the process with the exit status that it resolves to. It must not reject. */
export function start(main: () => Promise<number>): void {
  void main().then((code) => process.exit(code));
}
