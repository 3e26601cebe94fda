/** The NRI plugin's executable: one process on each node, which runs until it is ended. */
import { NRI_NAME } from "../cni/contract";
import { reasonOf } from "../cni/errors";
import { writeAll } from "../host/files";
import type { Host } from "../host/port";
import { createLog } from "../process/log";
import { Daemon } from "./daemon";
import { readSettings } from "./settings";

/** What the executable's C part provides. */
declare const host: Host;

const STDOUT = 1;

const write = (line: string) => void writeAll(host, STDOUT, line);

try {
  const settings = readSettings(host);
  new Daemon({ host, settings, log: createLog(settings.logLevel, settings.logFormat, write, NRI_NAME) }).run();
} catch (error) {
  createLog("info", "plain", write, NRI_NAME).error(reasonOf(error));
  host.exit(1);
}
