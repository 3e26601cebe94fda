import { reasonOf } from "../cni/errors";
import { createLog, type Log } from "../process/log";
import type { Environment } from "../process/settings";
import type { Disk } from "./apply/disk";
import { Service } from "./service";
import { readSettings } from "./settings";

/** The process environment of an installer. */
interface RunDeps {
  readonly args: readonly string[];
  readonly environment: Environment;
  readonly disk: Disk;
  readonly sleep: (ms: number) => Promise<unknown>;
  readonly write: (line: string) => void;
  /** Resolves when the process must stop. */
  readonly stopped: Promise<void>;
  /** The memory limit, for the log. */
  readonly memoryMiB: number;
}

/** Runs an installer until it is stopped. Resolves to the exit code. */
export async function run({ args, environment, disk, sleep, write, stopped, memoryMiB }: RunDeps): Promise<number> {
  let log: Log = createLog("info", "plain", write);
  try {
    const settings = readSettings(args, environment);
    log = createLog(settings.logLevel, settings.logFormat, write);
    log.debug(`memory is limited to ${memoryMiB} MiB`);
    const service = new Service({ settings, disk, sleep, log });
    await Promise.race([stopped, service.run()]);
    await service.stop();
    return 0;
  } catch (error) {
    log.error(reasonOf(error));
    return 1;
  }
}
