import { LOG_LEVELS, type LogLevel } from "./stanza";

/** The log of the installer and of the controllers; it stands here since neither of them imports the other. */

/** One line a call. */
export type Log = Readonly<Record<LogLevel, (message: string) => void>>;

export const LOG_FORMATS = ["plain", "json"] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

const print: Readonly<Record<LogFormat, (level: LogLevel, message: string) => string>> = {
  /** Every line begins with `linkerd-cni:`, so that it is found among a node's other logs. */
  plain: (level, message) => `linkerd-cni: ${level}: ${message.replaceAll("\n", "\\n")}\n`,
  json: (level, message) =>
    `${JSON.stringify({ time: new Date().toISOString(), level, logger: "linkerd-cni", message })}\n`,
};

/** A log that writes what is at least as grave as the threshold. */
export function createLog(threshold: LogLevel, format: LogFormat, write: (line: string) => void): Log {
  const at = (level: LogLevel) => (message: string) => {
    if (LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(threshold)) write(print[format](level, message));
  };
  return { trace: at("trace"), debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
