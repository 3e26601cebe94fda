import { LOG_LEVELS, type LogLevel } from "../cni/stanza";

/** One line a call. */
export type Log = Readonly<Record<LogLevel, (message: string) => void>>;

/** A log whose every line begins with `linkerd-cni:`, so that it is found among a node's other logs. */
export function createLog(threshold: LogLevel, write: (line: string) => void): Log {
  const at = (level: LogLevel) => (message: string) => {
    if (LOG_LEVELS.indexOf(level) < LOG_LEVELS.indexOf(threshold)) return;
    write(`linkerd-cni: ${level}: ${message.replaceAll("\n", "\\n")}\n`);
  };
  return { trace: at("trace"), debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
