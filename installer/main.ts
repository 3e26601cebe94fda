/** The installer's program: one process on each node, which runs until it is asked to stop. */
import { systemClock } from "../process/clock";
import { args, environment, onStop, start, write } from "../system/program";
import { nodeDisk } from "./apply/disk";
import { run } from "./run";

const stopped = new Promise<void>((resolve) => onStop(resolve));

start(() => run({ args, environment, disk: nodeDisk, sleep: systemClock.sleep, write, stopped }));
