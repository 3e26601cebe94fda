/** The NRI plugin's executable: one process on each node, which runs until it is ended. */
import { NRI_NAME } from "../cni/contract";
import { reasonOf } from "../cni/errors";
import { writeAll } from "../host/files";
import type { LastingHost } from "../host/port";
import { createLog } from "../process/log";
import { Daemon } from "./daemon";
import { readSettings } from "./settings";

/** What the executable's C part provides. */
declare const host: LastingHost;

const STDOUT = 1;
/** A message of the runtime has at most 4 MiB; of the pods of a node only what decides is kept. */
const MEMORY_MIB = 128;

const write = (line: string) => void writeAll(host, STDOUT, line);

try {
  host.limitMemory(MEMORY_MIB * 1024 * 1024);
  const settings = readSettings(host);
  const log = createLog(settings.logLevel, settings.logFormat, write, NRI_NAME);
  log.debug(`memory is limited to ${MEMORY_MIB} MiB`);
  new Daemon({ host, settings, log }).run();
} catch (error) {
  createLog("info", "plain", write, NRI_NAME).error(reasonOf(error));
  host.exit(1);
}
