/** The CNI plugin's executable. */
import { statSync } from "node:fs";
import { connectByRuntime } from "./api/bun-wire";
import { leanTransport } from "./api/transport";
import type { World } from "./call";
import { appendLine, CALL_LOG } from "./call-log";
import { dispatch } from "./dispatch";
import { hostPrograms } from "./iptables/host";
import type { Kernel } from "./netlink/port";
import { readAll, writeAll } from "./streams";

const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;

/** Reaching libc takes most of a millisecond, which a pod that is not meshed need not spend. */
let loaded: typeof import("./netlink/ffi") | undefined;
function native(): typeof import("./netlink/ffi") {
  loaded ??= require("./netlink/ffi") as typeof import("./netlink/ffi");
  return loaded;
}

const kernel: Kernel = {
  prepare: () => native().linuxKernel.prepare(),
  enterNamespace: (path) => native().linuxKernel.enterNamespace(path),
  exchange: (request) => native().linuxKernel.exchange(request),
};

/** Leaves at once; the runtime's own clean-up is quick only while little was used. */
function leave(status: number): void {
  if (loaded === undefined) process.exit(status);
  loaded.exitNow(status);
}

const world: World = {
  kernel,
  host: hostPrograms(process.env["PATH"]),
  connect: (server, whileWaiting) => leanTransport({ server, connect: connectByRuntime, whileWaiting }),
  warn: (line) => writeAll(STDERR, line),
  now: () => new Date(),
  elapsed: () => performance.now(),
  identify: (path) => {
    const { dev, ino } = statSync(path);
    return { device: dev, inode: ino };
  },
};

dispatch(process.env, () => readAll(STDIN), world).then(({ stdout, stderr, status, record }) => {
  writeAll(STDERR, stderr);
  const isTold = writeAll(STDOUT, stdout === "" ? "" : `${stdout}\n`);
  if (record !== undefined) appendLine(CALL_LOG, record);
  leave(isTold ? status : 1);
});
