import { createLog, type Log } from "../cni/log";
import { systemClock } from "./clock";
import { RepairController } from "./repair/controller";
import { readSettings } from "./repair/settings";

const out = (line: string): void => void process.stdout.write(line);

async function repair(args: readonly string[], stop: AbortSignal): Promise<void> {
  let log: Log = createLog("info", "plain", out);
  try {
    const settings = readSettings(args, process.env);
    log = createLog(settings.logLevel, settings.logFormat, out);
    await new RepairController({ settings, log, clock: systemClock, signal: stop }).run();
  } catch (error) {
    log.error(error instanceof Error ? error.message : String(error));
    process.exitCode = 1;
  }
}

/** The controllers by name: the first argument chooses one. */
const controllers: Readonly<Record<string, (args: readonly string[], stop: AbortSignal) => Promise<void>>> = { repair };

async function run([name = "", ...args]: readonly string[]): Promise<void> {
  const stop = new AbortController();
  process.once("SIGTERM", () => stop.abort());
  process.once("SIGINT", () => stop.abort());
  const controller = controllers[name];
  if (controller === undefined) {
    out(`linkerd-cni: error: no controller "${name}"; known are ${Object.keys(controllers).join(", ")}\n`);
    process.exitCode = 2;
  } else {
    await controller(args, stop.signal);
  }
  process.exit();
}

void run(process.argv.slice(2));
