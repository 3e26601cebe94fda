import { NodePath, NRI_PORT, NriVariable } from "../cni/contract";
import { reasonOf } from "../cni/errors";
import { isObject, type Json } from "../cni/json";
import { LEVEL_ALIASES, readStanza, type StanzaReading } from "../cni/parse-stanza";
import { LOG_FORMATS, LOG_LEVELS, type LogFormat, type LogLevel, PLUGIN_TYPE } from "../cni/stanza";
import type { Host } from "../host/port";
import { type Setting, SettingsReader } from "../process/settings";

/** Settings of the NRI plugin. */
export interface Settings {
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
  /** Directory of the container runtime's socket `nri.sock`. */
  readonly socketDir: string;
  /** Directory in which the runtime mounts the network namespaces of pods. */
  readonly netnsDir: string;
  /** Whether the CNI plugin is chained on the node, too. */
  readonly chained: boolean;
  /** Two digits: the runtime calls plugins in their order. */
  readonly index: string;
  /** Port of probes and metrics. */
  readonly port: number;
  readonly stanza: StanzaReading;
}

const DEFAULTS = {
  [NriVariable.stanza]: "{}",
  [NriVariable.logLevel]: "info",
  [NriVariable.logFormat]: "plain",
  [NriVariable.socketDir]: NodePath.nriDir as string,
  [NriVariable.netnsDir]: NodePath.netnsDir as string,
  [NriVariable.chained]: "true",
  [NriVariable.index]: "10",
  [NriVariable.port]: String(NRI_PORT),
};

/** @throws an Error that lists all problems */
export function readSettings(host: Pick<Host, "env">): Settings {
  const names = Object.keys(DEFAULTS) as (keyof typeof DEFAULTS)[];
  const read = new SettingsReader({ environment: Object.fromEntries(names.map((name) => [name, host.env(name)])) });
  const setting = (name: keyof typeof DEFAULTS) => read.env(name, DEFAULTS[name]);
  const settings: Settings = {
    logLevel: logLevel(setting(NriVariable.logLevel)),
    logFormat: setting(NriVariable.logFormat).oneOf(LOG_FORMATS),
    socketDir: setting(NriVariable.socketDir).absolutePath(),
    netnsDir: setting(NriVariable.netnsDir).absolutePath(),
    chained: setting(NriVariable.chained).boolean(),
    index: setting(NriVariable.index).matching({ pattern: /^\d\d$/, what: "two digits, such as 10" }),
    port: setting(NriVariable.port).port(),
    stanza: stanzaOf(setting(NriVariable.stanza), read.problems),
  };
  read.finish();
  return settings;
}

function logLevel(setting: Setting): LogLevel {
  return LEVEL_ALIASES[setting.value] ?? setting.oneOf(LOG_LEVELS);
}

/**
 * An invalid field keeps meshed pods from starting, as with the CNI plugin; text that is not JSON keeps the process
 * from starting.
 */
function stanzaOf({ name, value }: Setting, problems: string[]): StanzaReading {
  let stanza: Json = {};
  try {
    stanza = JSON.parse(value) as Json;
  } catch (error) {
    problems.push(`${name}: ${reasonOf(error)}`);
  }
  if (!isObject(stanza)) problems.push(`${name} is not a JSON object`);
  return readStanza(isObject(stanza) ? stanza : {}, PLUGIN_TYPE);
}
