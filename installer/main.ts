import { nodeDisk } from "./disk";
import { createLog, type Log } from "./log";
import { Service } from "./service";
import { readSettings } from "./settings";

const out = (line: string): void => void process.stdout.write(line);

async function run(): Promise<void> {
  let log: Log = createLog("info", "plain", out);
  try {
    const settings = readSettings(process.argv.slice(2), process.env);
    log = createLog(settings.logLevel, settings.logFormat, out);
    const owner = `${settings.identity} since ${new Date().toISOString()} (process ${process.pid})`;
    const service = new Service({ settings, disk: nodeDisk, log, owner });
    const stopped = new Promise<void>((resolve) => {
      process.once("SIGTERM", resolve);
      process.once("SIGINT", resolve);
    });
    await Promise.race([service.start(), stopped]);
    await stopped;
    await service.stop();
  } catch (error) {
    log.error(error instanceof Error ? error.message : String(error));
    process.exitCode = 1;
  }
  process.exit();
}

void run();
