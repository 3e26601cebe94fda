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

/** A failure, as the plugin reports it to a CNI runtime. */
export class CniError extends Error {
  override readonly name = "CniError";
  constructor(
    readonly code: number,
    message: string,
    /** What helps to find the cause, beyond the message. */
    readonly details = "",
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The message of anything that was thrown. When memory runs out, the engine throws null. */
export function reasonOf(thrown: unknown): string {
  if (thrown === null) return "out of memory";
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** How much of a given value a message shows, in characters. */
const SHOWN = 80;

const cut = (text: string) => text.slice(0, SHOWN).replace(/[\ud800-\udbff]$/, "");

/**
 * A given text as messages show it. A long one is cut, and its length is added: a runtime logs the message, and puts it
 * into an Event.
 */
export function shortened(text: string): string {
  return text.length <= SHOWN ? text : `${cut(text)}… (${text.length} characters)`;
}

/** Like {@link shortened}, in quotes and on one line. */
export function quoted(text: string): string {
  return text.length <= SHOWN ? JSON.stringify(text) : `${JSON.stringify(`${cut(text)}…`)} (${text.length} characters)`;
}

/** The one JSON document that a failing call prints on standard output. */
export function errorDocument(error: Pick<CniError, "code" | "message" | "details">, cniVersion: string): string {
  return JSON.stringify({ cniVersion, code: error.code, msg: error.message, details: error.details });
}
