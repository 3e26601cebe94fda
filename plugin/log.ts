import { printable } from "../cni/errors";
import { LOG_LEVELS, type LogLevel } from "../cni/stanza";
import { writeAll } from "../host/files";
import type { Host } from "../host/port";

/** Writes one line for people, depending on the level. */
export type Log = (level: LogLevel, message: string) => void;

const STDERR = 2;

/** A line begins with the plugin's name, so that it can be found in a runtime's log. */
export function logLine(level: LogLevel, message: string): string {
  return `linkerd-cni: ${level}: ${printable(message.replaceAll("\n", " "))}\n`;
}

/** A log on standard error. */
export function lineLog(host: Host, threshold: LogLevel): Log {
  return (level, message) => {
    if (LOG_LEVELS.indexOf(level) < LOG_LEVELS.indexOf(threshold)) return;
    writeAll(host, STDERR, logLine(level, message));
  };
}
