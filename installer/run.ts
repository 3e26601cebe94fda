import { createLog, type Log } from "../cni/log";
import type { Disk } from "./node/disk";
import { ownerName } from "./node/journal";
import { Service } from "./service";
import { type Environment, readSettings } from "./settings";

/** What an installer's process gets from outside. */
export interface Outside {
  readonly args: readonly string[];
  readonly environment: Environment;
  readonly processId: number;
  readonly disk: Disk;
  readonly sleep: (ms: number) => Promise<unknown>;
  readonly write: (line: string) => void;
  /** Resolves when the process is asked to stop. */
  readonly stopped: Promise<void>;
}

/** Runs an installer until it is stopped. Resolves to the exit code. */
export async function run({ args, environment, processId, disk, sleep, write, stopped }: Outside): Promise<number> {
  let log: Log = createLog("info", "plain", write);
  try {
    const settings = readSettings(args, environment);
    log = createLog(settings.logLevel, settings.logFormat, write);
    const owner = ownerName(settings.identity, new Date(), processId);
    const service = new Service({ settings, disk, sleep, log, owner });
    const asked = Promise.race([stopped, service.failed]);
    await Promise.race([service.start(), asked]);
    await asked;
    await service.stop();
    return 0;
  } catch (error) {
    log.error(error instanceof Error ? error.message : String(error));
    return 1;
  }
}
