/** The CNI plugin's executable. */
import { readFileSync, statSync, writeSync } from "node:fs";
import { connectByRuntime } from "./api/bun-wire";
import { leanTransport } from "./api/transport";
import type { World } from "./call";
import { appendLine, CALL_LOG } from "./call-log";
import { dispatch } from "./dispatch";
import { hostPrograms } from "./iptables/host";
import type { Kernel } from "./netlink/port";

const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;

/** Writes all of a text; a closed descriptor must not turn a done ADD into a failed one. */
function write(descriptor: number, text: string): void {
  const bytes = Buffer.from(text);
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at);
  } catch {
    // Nobody listens.
  }
}

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
  warn: (line) => write(STDERR, line),
  now: () => new Date(),
  elapsed: () => performance.now(),
  identify: (path) => {
    const { dev, ino } = statSync(path);
    return `${dev}:${ino}`;
  },
};

dispatch(process.env, () => readFileSync(STDIN, "utf8"), world).then(({ stdout, stderr, status, record }) => {
  if (stderr !== "") write(STDERR, stderr);
  if (stdout !== "") write(STDOUT, `${stdout}\n`);
  if (record !== undefined) appendLine(CALL_LOG, record);
  leave(status);
});
