import { LOG_LEVELS, type LogLevel } from "../cni/stanza";

/** Writes one line for people; the level decides whether it is written at all. */
export type Log = (level: LogLevel, message: string) => void;

/** Every line begins with the plugin's name, so that it is found in a runtime's own log. */
export function lineLog(write: (line: string) => void, threshold: LogLevel): Log {
  return (level, message) => {
    if (LOG_LEVELS.indexOf(level) < LOG_LEVELS.indexOf(threshold)) return;
    write(`linkerd-cni: ${level}: ${message.replaceAll("\n", " ")}\n`);
  };
}
