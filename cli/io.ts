import { reasonOf } from "../cni/errors";

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
  /** Reads a text over HTTP. @throws an Error that names the URL */
  readonly fetch: (url: string) => Promise<string>;
}

/** Says what is wrong on standard error, one line each. */
export function complain(io: Io, message: string): void {
  io.err(`l5d-cni: ${message}\n`);
}

/** Ends a command without success and without another message. */
export class Unsuccessful extends Error {
  override readonly name = "Unsuccessful";
}

const TIMEOUT_MS = 30_000;
const MAX_BYTES = 1 << 20;

/** Whether a text is an http or https URL. */
export const isUrl = (text: string): boolean => /^https?:\/\//.test(text);

/** A URL without credentials and query, for messages. */
export const withoutCredentials = (url: string): string => url.replace(/\/\/[^/]*@/, "//").replace(/[?#].*/s, "");

/** The request for a URL, with the user and password in a header. */
function requestFor(text: string): Request {
  const url = new URL(text);
  const [user, password] = [url.username, url.password].map(decodeURIComponent);
  url.username = "";
  url.password = "";
  const basic = `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
  return new Request(url, { headers: user === "" ? {} : { authorization: basic } });
}

/** Reads a text of up to 1 MiB over HTTP within 30 s. @throws an Error that names the URL, without credentials */
export async function fetchText(url: string): Promise<string> {
  try {
    const answer = await fetch(requestFor(url), { signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of answer.body ?? []) {
      size += chunk.length;
      if (size > MAX_BYTES) throw new Error(`more than ${MAX_BYTES} bytes`);
      chunks.push(chunk);
    }
    return new TextDecoder().decode(Buffer.concat(chunks));
  } catch (error) {
    const { cause } = error as { cause?: unknown };
    const reason = reasonOf(cause ?? error);
    throw new Error(`${withoutCredentials(url)}: ${reason.includes(url) ? "is not a URL" : reason}`);
  }
}
