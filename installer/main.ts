import { httpsTransport } from "../kubernetes/client";
import { readApiServer } from "../kubernetes/in-cluster";
import { nodeDisk } from "./disk";
import { serve } from "./health";
import { createKeeper, type Status } from "./keeper";
import { createLog, type Log } from "./log";
import { pluginCopy } from "./plugin-copy";
import { readSettings, type Settings } from "./settings";
import { askForDaemonSet, decideByAnswer, decideBySettings, type StopDecision } from "./stop";
import { watchDirectories } from "./watch";

/** Within this time after SIGTERM everything is done: well inside a terminationGracePeriodSeconds of 30. */
const ASK_DEADLINE_MS = 6_000;
/** A look without an event, for what no event tells: another mount, a lost watch. */
const LOOK_EVERY_MS = 1_000;

const out = (line: string): void => void process.stdout.write(line);

async function decide(settings: Settings): Promise<StopDecision> {
  const decided = decideBySettings(settings);
  if (decided !== undefined || settings.daemonSet === undefined) return decided ?? { remove: false, why: "" };
  try {
    const transport = httpsTransport(readApiServer(settings.cluster));
    return decideByAnswer(await askForDaemonSet(settings.daemonSet, transport, ASK_DEADLINE_MS));
  } catch (error) {
    return { remove: false, why: error instanceof Error ? error.message : String(error) };
  }
}

async function keep(settings: Settings, log: Log): Promise<void> {
  const owner = `${settings.identity} since ${new Date().toISOString()}`;
  const keeper = createKeeper({ settings, owner, disk: nodeDisk, plugin: pluginCopy(), log });
  let status: Status = keeper.reconcile();
  const look = () => {
    status = keeper.reconcile();
  };
  const timer = setInterval(look, LOOK_EVERY_MS);
  const directories = [settings.netDir.here, settings.binDir.here, settings.cluster.serviceAccountDir];
  const unwatch = watchDirectories([...new Set(directories)], look, (directory, reason) =>
    log.warn(`cannot watch ${directory} (${reason}): looking every ${LOOK_EVERY_MS} ms instead`),
  );
  const ready = () => status.problem ?? "";
  const server =
    settings.healthPort === 0
      ? undefined
      : serve(settings.healthPort, {
          "/live": () => ({ status: 200, body: "live\n" }),
          "/ready": () => ({ status: ready() === "" ? 200 : 503, body: `${ready() || "ready"}\n` }),
          "/metrics": () => ({
            status: 200,
            body: `# HELP linkerd_cni_ready Whether a pod that starts now is chained.\n# TYPE linkerd_cni_ready gauge\nlinkerd_cni_ready ${ready() === "" ? 1 : 0}\n`,
          }),
        });
  await new Promise<void>((resolve) => {
    process.once("SIGTERM", resolve);
    process.once("SIGINT", resolve);
  });
  clearInterval(timer);
  unwatch();
  server?.close();
  const { remove, why } = await decide(settings);
  log.info(`stopping: ${why}: ${remove ? "removing what was installed" : "leaving all in place"}`);
  if (remove) keeper.remove(false);
}

async function main(): Promise<void> {
  let log = createLog("info", out);
  try {
    const settings = readSettings(process.argv.slice(2), process.env);
    log = createLog(settings.logLevel, out);
    await keep(settings, log);
  } catch (error) {
    log.error(error instanceof Error ? error.message : String(error));
    process.exitCode = 1;
  }
  process.exit();
}

void main();
