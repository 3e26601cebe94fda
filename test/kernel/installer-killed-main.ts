/**
 * The installer, killed at its Nth operation that changes a file: KILL_AT names it, KILL_HALFWAY leaves half of what it
 * was about to write. Prints how many operations there were where it is not killed. Built for tests only.
 */
import { writeFileSync } from "node:fs";
import { type Disk, nodeDisk } from "../../installer/apply/disk";
import { run } from "../../installer/run";

let count = 0;
const killAt = Number(process.env["KILL_AT"]);
const halfway = process.env["KILL_HALFWAY"] === "1";

/** Nothing runs after it: the process is gone before the call returns. */
function die(): never {
  process.kill(process.pid, "SIGKILL");
  for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
}

function operation<A extends readonly unknown[]>(run: (...args: A) => Promise<void>, half?: (...args: A) => void) {
  return (...args: A): Promise<void> => {
    count += 1;
    if (count === killAt) {
      if (halfway) half?.(...args);
      die();
    }
    return run(...args);
  };
}

const disk: Disk = {
  create: operation(nodeDisk.create, (path, bytes) => writeFileSync(path, bytes.subarray(0, bytes.length / 2))),
  copy: operation(nodeDisk.copy, (_, path) => writeFileSync(path, "#!/bin/sh\n")),
  name: operation(nodeDisk.name),
  link: operation(nodeDisk.link),
  rename: operation(nodeDisk.rename),
  makeDirectory: operation(nodeDisk.makeDirectory),
  removeDirectory: operation(nodeDisk.removeDirectory),
  remove: operation(nodeDisk.remove),
  settle: operation(nodeDisk.settle),
};

const stopped = new Promise<void>((resolve) => process.once("SIGTERM", resolve));
const write = (line: string) => void process.stdout.write(line);

const sleep = async () => undefined;

void run({ args: [], environment: process.env, disk, sleep, write, stopped }).then((code) => {
  write(`operations: ${count}\n`);
  process.exit(code);
});
