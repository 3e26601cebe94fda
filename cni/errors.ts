/** Error codes of the CNI specification that this plugin uses; 100 and up are its own. */
export const ErrorCode = {
  incompatibleVersion: 1,
  environment: 4,
  io: 5,
  decoding: 6,
  config: 7,
  tryAgainLater: 11,
  /** STATUS: the plugin cannot serve an ADD now. */
  notAvailable: 50,
  /** CHECK: the rules in force are not what they should be. */
  rulesDiffer: 100,
  /** The kernel or a host program refused the rules. */
  rulesRefused: 101,
  /** A defect of the plugin itself. */
  internal: 102,
} as const;

/** A failure, as reported to a CNI runtime. */
export class CniError extends Error {
  override readonly name = "CniError";
  constructor(
    readonly code: number,
    message: string,
    /** Details that help to find the cause. */
    readonly details = "",
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The message of any thrown value. The plugin's engine throws null when memory runs out. */
export function reasonOf(thrown: unknown): string {
  if (thrown === null || thrown === undefined) return "out of memory";
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** The code of a failed system call, such as `ENOENT`. */
export const codeOf = (thrown: unknown): string | undefined => (thrown as { readonly code?: string } | undefined)?.code;

/** Control characters, line separators, and invisible characters, such as those that change a text's direction. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;
const KEPT = "\n\t";

const escaped = (character: string) =>
  Array.from({ length: character.length }, (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`);

/**
 * A text with visible control characters, for a log, an Event or a terminal, since messages contain annotations and
 * names from users. Line feeds and tabs stay, and JSON stays equivalent.
 */
export function printable(text: string): string {
  return text.replace(HIDDEN, (character) => (KEPT.includes(character) ? character : escaped(character).join("")));
}

/** Maximum length of a given value in a message, in characters. */
const SHOWN = 80;

const cut = (text: string) => text.slice(0, SHOWN).replace(/[\ud800-\udbff]$/, "");

/**
 * A given text for a message. A long one is truncated, with its length appended, since runtimes put the message into
 * logs and Events.
 */
export function shortened(text: string): string {
  return text.length <= SHOWN ? text : `${cut(text)}… (${text.length} characters)`;
}

/** Like {@link shortened}, in quotes, printable and on one line. */
export function quoted(text: string): string {
  const inQuotes = (shown: string) => printable(JSON.stringify(shown));
  return text.length <= SHOWN ? inQuotes(text) : `${inQuotes(`${cut(text)}…`)} (${text.length} characters)`;
}

/** The one JSON document that a failing call prints on standard output. */
export function errorDocument(error: Pick<CniError, "code" | "message" | "details">, cniVersion: string): string {
  const { code, message, details } = error;
  return JSON.stringify({ cniVersion, code, msg: printable(message), details: printable(details) });
}
