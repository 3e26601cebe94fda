/**
 * The installer, killed at its Nth operation that changes a file: KILL_AT names it. It leaves half of what it was
 * about to write. Each adds a byte to the file that KILL_COUNTED names. Built for tests only.
 */

import { readFileSync, readlinkSync } from "node:fs";
import { type Disk, nodeDisk } from "../../installer/apply/disk";
import { run } from "../../installer/run";
import { host } from "../../system/engine/host";
import { createFileSync } from "../../system/fs";
import { args, environment, onStop, start, write } from "../../system/program";

const SIGKILL = 9;
const APPEND = 0o2101; // O_WRONLY, O_CREAT, O_APPEND

const killAt = Number(environment["KILL_AT"]);
const counted = environment["KILL_COUNTED"];

const self = () => Number(readlinkSync("/proc/self"));
const installer = self();

/** Ends the installer, and the process apart from it that is changing the file: that is gone before the call returns. */
function die(): void {
  host.kill(installer, SIGKILL);
  host.kill(self(), SIGKILL);
}

/**
 * Counts in a file: operations run in processes that share nothing else, two at a time. The descriptor is where its own
 * byte ends; the file may have grown.
 */
function count(path: string): number {
  const file = host.open(path, APPEND, 0o600);
  host.write(file, Uint8Array.of(0));
  const [, position] = /^pos:\s*(\d+)/.exec(readFileSync(`/proc/self/fdinfo/${file}`, "utf8")) ?? [];
  host.close(file);
  return Number(position);
}

type Operation<A extends readonly unknown[]> = (...args: A) => void;

function operation<A extends readonly unknown[]>(run: Operation<A>, half?: Operation<A>): Operation<A> {
  return (...args) => {
    if (counted !== undefined && count(counted) === killAt) {
      half?.(...args);
      die();
    }
    run(...args);
  };
}

const disk: Disk = {
  create: operation(nodeDisk.create, (path, bytes, mode) =>
    createFileSync(path, bytes.subarray(0, bytes.length / 2), mode),
  ),
  copy: operation(nodeDisk.copy, (_, path, mode) =>
    createFileSync(path, new TextEncoder().encode("#!/bin/sh\n"), mode),
  ),
  name: operation(nodeDisk.name),
  link: operation(nodeDisk.link),
  rename: operation(nodeDisk.rename),
  exchange: operation(nodeDisk.exchange),
  makeDirectory: operation(nodeDisk.makeDirectory),
  removeDirectory: operation(nodeDisk.removeDirectory),
  remove: operation(nodeDisk.remove),
  settle: operation(nodeDisk.settle),
  isOpened: nodeDisk.isOpened,
};

const stopped = new Promise<void>((resolve) => onStop(resolve));
const sleep = async () => undefined;

start(() => run({ args, environment, disk, sleep, write, stopped, memoryMiB: 64 }));
