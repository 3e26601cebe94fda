/** What a command gets from and gives to the world. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Reads a file, and standard input for `-`. */
  readonly readFile: (path: string) => string;
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
}
