import { printable } from "../cni/errors";
import { LOG_FORMATS, LOG_LEVELS, type LogFormat, type LogLevel } from "../cni/stanza";

export { LOG_FORMATS, type LogFormat };

/** The subject of a line, by name: `namespace`, `object`, … */
type LogFields = Readonly<Record<string, string | number | boolean>>;

/** Writes one line per call. */
export type Log = Readonly<Record<LogLevel, (message: string, fields?: LogFields) => void>>;

interface Line {
  readonly level: LogLevel;
  readonly logger: string;
  readonly message: string;
  readonly fields: LogFields;
}

const plainValue = (value: string | number | boolean) =>
  /^[^\s"=]+$/.test(String(value)) ? String(value) : JSON.stringify(value);

const print: Readonly<Record<LogFormat, (line: Line) => string>> = {
  /** Every line begins with the logger, so that it can be found among a node's other logs. */
  plain: ({ level, logger, message, fields }) => {
    const about = Object.entries(fields).map(([name, value]) => ` ${name}=${plainValue(value)}`);
    return `${logger}: ${level}: ${printable(`${message.replaceAll("\n", "\\n")}${about.join("")}`)}\n`;
  },
  // Texts are made printable before they are escaped, so that JSON readers get them that way.
  json: ({ fields, message, ...line }) => {
    const time = new Date().toISOString();
    const shown = Object.entries(fields).map(([name, value]) => [
      name,
      typeof value === "string" ? printable(value) : value,
    ]);
    return `${JSON.stringify({ time, ...line, message: printable(message), ...Object.fromEntries(shown) })}\n`;
  },
};

const PROJECT = "linkerd-cni";

/** A log of messages at or above a level; a line begins with the logger's name. */
export function createLog(
  threshold: LogLevel,
  format: LogFormat,
  write: (line: string) => void,
  logger: string = PROJECT,
): Log {
  const at =
    (level: LogLevel) =>
    (message: string, fields: LogFields = {}) => {
      if (LOG_LEVELS.indexOf(level) < LOG_LEVELS.indexOf(threshold)) return;
      write(print[format]({ level, logger, message, fields }));
    };
  return { trace: at("trace"), debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
