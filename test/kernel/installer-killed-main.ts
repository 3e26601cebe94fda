/**
 * The installer, killed at its Nth operation that changes a file: KILL_AT names it, KILL_HALFWAY leaves half of what it
 * was about to write. Prints how many operations there were where it is not killed. Built for tests only.
 */
import { type Disk, nodeDisk } from "../../installer/apply/disk";
import { run } from "../../installer/run";
import { host } from "../../system/engine/host";
import { createFile, readlinkSync } from "../../system/fs";
import { args, environment, onStop, start, write } from "../../system/program";

const SIGKILL = 9;

let count = 0;
const killAt = Number(environment["KILL_AT"]);
const halfway = environment["KILL_HALFWAY"] === "1";

/** The process is gone before the call returns. */
const die = () => host.kill(Number(readlinkSync("/proc/self")), SIGKILL);

type Operation<A extends readonly unknown[]> = (...args: A) => Promise<void>;

function operation<A extends readonly unknown[]>(run: Operation<A>, half?: Operation<A>): Operation<A> {
  return async (...args) => {
    count += 1;
    if (count === killAt) {
      if (halfway) await half?.(...args);
      die();
    }
    return run(...args);
  };
}

const disk: Disk = {
  create: operation(nodeDisk.create, (path, bytes, mode) =>
    createFile(path, bytes.subarray(0, bytes.length / 2), mode),
  ),
  copy: operation(nodeDisk.copy, (_, path, mode) => createFile(path, new TextEncoder().encode("#!/bin/sh\n"), mode)),
  name: operation(nodeDisk.name),
  link: operation(nodeDisk.link),
  rename: operation(nodeDisk.rename),
  makeDirectory: operation(nodeDisk.makeDirectory),
  removeDirectory: operation(nodeDisk.removeDirectory),
  remove: operation(nodeDisk.remove),
  settle: operation(nodeDisk.settle),
};

const stopped = new Promise<void>((resolve) => onStop(resolve));
const sleep = async () => undefined;

start(async () => {
  const code = await run({ args, environment, disk, sleep, write, stopped, memoryMiB: 64 });
  write(`operations: ${count}\n`);
  return code;
});
