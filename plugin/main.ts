/** The CNI plugin's executable. */
import { readFileSync, statSync, writeSync } from "node:fs";
import { connectByRuntime } from "./api/bun-wire";
import { leanTransport } from "./api/transport";
import type { World } from "./call";
import { appendLine, CALL_LOG } from "./call-log";
import { dispatch } from "./dispatch";
import { hostPrograms } from "./iptables/host";
import { exitNow, LinuxKernel } from "./netlink/ffi";

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

const world: World = {
  kernel: new LinuxKernel(),
  host: hostPrograms(process.env["PATH"]),
  connect: (server) => leanTransport(server, connectByRuntime),
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
  exitNow(status);
});
