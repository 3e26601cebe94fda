/** The NRI plugin's executable: one long-running process on each node. */
import { NRI_NAME } from "../cni/contract";
import { reasonOf } from "../cni/errors";
import type { Host } from "../host/port";
import { systemClock } from "../process/clock";
import { createLog } from "../process/log";
import { limitMemory, start, write } from "../system/program";
import { Daemon } from "./daemon";
import { readSettings } from "./settings";

/** The functions of the executable's C part. */
declare const host: Host;

/** A message of the runtime has at most 4 MiB; only the fields for decisions are stored for the node's pods. */
const MEMORY_MIB = 128;

limitMemory(MEMORY_MIB * 1024 * 1024);

start(async () => {
  try {
    const settings = readSettings(host);
    const log = createLog(settings.logLevel, settings.logFormat, write, NRI_NAME);
    log.debug(`memory is limited to ${MEMORY_MIB} MiB`);
    await new Daemon({ host, settings, log, clock: systemClock }).run();
    return 0;
  } catch (error) {
    createLog("info", "plain", write, NRI_NAME).error(reasonOf(error));
    return 1;
  }
});
