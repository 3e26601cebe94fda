import { reasonOf } from "../cni/errors";
import type { LogLevel } from "../cni/stanza";
import { type Clock, systemClock } from "../process/clock";
import { createLog, type Log, type LogFormat } from "../process/log";
import type { Environment } from "../process/settings";
import { args, environment, limitMemory, onStop, start, write } from "../system/program";

const MIB = 1024 * 1024;

interface LogSettings {
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
}

interface ProgramDeps<S> {
  readonly settings: S;
  readonly log: Log;
  readonly clock: Clock;
  /** Aborted when the process must stop. */
  readonly signal: AbortSignal;
}

/** A program: reads its settings, and runs. */
interface Program<S extends LogSettings> {
  readonly logger: string;
  /** MiB beyond which it exits and the kubelet restarts it. */
  readonly memoryMiB: number;
  readonly readSettings: (args: readonly string[], environment: Environment) => S;
  readonly run: (deps: ProgramDeps<S>) => Promise<void>;
}

/** Runs one of the controllers' programs; the exit status is 1 after an error, which is logged. */
export function startProgram<S extends LogSettings>({ logger, memoryMiB, readSettings, run }: Program<S>): void {
  const stop = new AbortController();
  onStop(() => stop.abort());
  limitMemory(memoryMiB * MIB);
  start(async () => {
    let log = createLog("info", "plain", write, logger);
    try {
      const settings = readSettings(args, environment);
      log = createLog(settings.logLevel, settings.logFormat, write, logger);
      log.debug(`memory is limited to ${memoryMiB} MiB`);
      await run({ settings, log, clock: systemClock, signal: stop.signal });
      return 0;
    } catch (error) {
      log.error(reasonOf(error));
      return 1;
    }
  });
}
