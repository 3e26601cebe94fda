/** The repair controller alone, on a clock that moves when no work is left: no API server, no installer. */
import { RepairController } from "../../controllers/repair/controller";
import { createMetrics } from "../../controllers/repair/metrics";
import { VirtualClock } from "./virtual-clock";

const quiet = () => undefined;
export const noLog = { trace: quiet, debug: quiet, info: quiet, warn: quiet, error: quiet };

type Dependencies = ConstructorParameters<typeof RepairController>[0];

/** @param settings changes of: a deletion a second, ten at once, pods of controllers only, without NRI */
export function repairOnVirtualClock(
  actions: Partial<Dependencies["actions"]>,
  settings: Partial<Dependencies["settings"]> = {},
) {
  const clock = new VirtualClock();
  const stopping = new AbortController();
  const controller = new RepairController({
    settings: { rate: { perSecond: 1, burst: 10 }, deleteUnowned: false, waitForNri: false, ...settings },
    actions: { delete: async () => "deleted", publish: async () => undefined, ...actions },
    installerReady: async () => true,
    injectorProblem: async () => undefined,
    metrics: createMetrics(),
    clock,
    log: noLog,
    signal: stopping.signal,
  });
  let running: Promise<void> | undefined;
  /** Lets it work for so many milliseconds. */
  const run = async (ms: number) => {
    running ??= controller.run();
    await clock.run(ms);
  };
  const end = async () => {
    stopping.abort();
    await running;
  };
  return { controller, clock, run, end };
}
