/** The installer's program, loaded once for all of its processes: as `installer/main.ts`, which is a process of its own. */
import { nodeDisk } from "../../../installer/apply/disk";
import { run } from "../../../installer/run";
import { systemClock } from "../../../process/clock";
import { kernel } from "./kernel";

export { enter } from "./kernel";

export function main(): void {
  const { args, environment, write, onStop, exit } = kernel;
  const stopped = new Promise<void>((resolve) => onStop(resolve));
  const ended = run({ args, environment, disk: nodeDisk, sleep: systemClock.sleep, write, stopped, memoryMiB: 64 });
  // A function of the simulation would wait in its queue of promises, not in that of this realm.
  void ended.then((code) => exit(code));
}
