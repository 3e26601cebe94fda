/** The result of a program. */
export interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** The inputs and outputs of a command. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Reads a file, or standard input for `-`. */
  readonly readFile: (path: string) => string;
  /** Writes a new file, or standard output for `-`. @throws if the file exists */
  readonly writeFile: (path: string, content: Buffer) => void;
  readonly exists: (path: string) => boolean;
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  /** Runs a program to its end. @throws if it cannot be started */
  readonly run: (program: string, args: readonly string[]) => Promise<Ended>;
  readonly sleep: (milliseconds: number) => Promise<void>;
  /** Milliseconds on any clock. */
  readonly now: () => number;
  /** The current date and time. */
  readonly date: () => Date;
  /** Whether standard output takes colours. */
  readonly colour: boolean;
}

/** Says what is wrong on standard error, one line each. */
export function complain(io: Io, message: string): void {
  io.err(`l5d-cni: ${message}\n`);
}

/** Ends a command without success and without another message. */
export class Unsuccessful extends Error {
  override readonly name = "Unsuccessful";
}
