import { CNI_NAME, MULTUS_NAME } from "../cni/contract";
import type { LogLevel } from "../cni/stanza";
import { type Clock, systemClock } from "../process/clock";
import { createLog, type Log, type LogFormat } from "../process/log";
import { reasonOf } from "../process/reason-of";
import type { Environment } from "../process/settings";

const out = (line: string): void => void process.stdout.write(line);

interface LogSettings {
  readonly logLevel: LogLevel;
  readonly logFormat: LogFormat;
}

interface Deps<S> {
  readonly settings: S;
  readonly log: Log;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** How a program reads its settings, and how it runs. */
interface Program<S extends LogSettings> {
  readonly logger: string;
  readonly readSettings: (args: readonly string[], environment: Environment) => S;
  readonly run: (deps: Deps<S>) => Promise<void>;
}

/** A program that can be started, whatever its settings are. */
type Start = (args: readonly string[], signal: AbortSignal) => Promise<void>;

function starting<S extends LogSettings>({ logger, readSettings, run }: Program<S>): Start {
  return async (args, signal) => {
    let log = createLog("info", "plain", out, logger);
    try {
      const settings = readSettings(args, process.env);
      log = createLog(settings.logLevel, settings.logFormat, out, logger);
      await run({ settings, log, clock: systemClock, signal });
    } catch (error) {
      log.error(reasonOf(error));
      process.exitCode = 1;
    }
  };
}

/** The programs by name, which the first argument chooses; each is loaded only when it is the one. */
const programs: Readonly<Record<string, () => Start>> = {
  repair: () => {
    const { runRepairController } = require("./repair/run") as typeof import("./repair/run");
    const { readSettings } = require("./repair/settings") as typeof import("./repair/settings");
    return starting({
      logger: CNI_NAME,
      readSettings,
      run: runRepairController,
    });
  },
  multus: () => {
    const { MultusOperator } = require("./multus/operator") as typeof import("./multus/operator");
    const { readSettings } = require("./multus/settings") as typeof import("./multus/settings");
    return starting({
      logger: MULTUS_NAME,
      readSettings,
      run: (deps) => new MultusOperator(deps).run(),
    });
  },
  validate: () => {
    const { readSettings, validate } = require("./validate") as typeof import("./validate");
    return starting({ logger: CNI_NAME, readSettings, run: validate });
  },
};

async function run([name = "", ...args]: readonly string[]): Promise<void> {
  const stop = new AbortController();
  process.once("SIGTERM", () => stop.abort());
  process.once("SIGINT", () => stop.abort());
  const program = Object.hasOwn(programs, name) ? programs[name] : undefined;
  if (program === undefined) {
    out(`linkerd-cni: error: no program "${name}"; known are ${Object.keys(programs).join(", ")}\n`);
    process.exitCode = 2;
  } else {
    await program()(args, stop.signal);
  }
  process.exit();
}

void run(process.argv.slice(2));
