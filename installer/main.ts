/** The installer's program: one process on each node, which runs until it receives a signal. */
import { systemClock } from "../process/clock";
import { args, environment, limitMemory, onStop, start, write } from "../system/program";
import { nodeDisk } from "./apply/disk";
import { run } from "./run";

/** This pod is the largest object that it reads. */
const MEMORY_MIB = 64;

limitMemory(MEMORY_MIB * 1024 * 1024);

const stopped = new Promise<void>((resolve) => onStop(resolve));

start(() =>
  run({ args, environment, disk: nodeDisk, sleep: systemClock.sleep, write, stopped, memoryMiB: MEMORY_MIB }),
);
