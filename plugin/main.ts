/** The CNI plugin's executable. */
import { connectByRuntime } from "./api/bun-wire";
import { leanTransport } from "./api/transport";
import type { World } from "./call";
import { appendLine, CALL_LOG } from "./call-log";
import { dispatch } from "./dispatch";
import { libcFiles } from "./files/libc";
import { readAll, readText, writeAll } from "./files/streams";
import { hostPrograms } from "./iptables/host";
import { exitNow } from "./libc";
import { linuxKernel } from "./netlink/linux";

const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;

/** The one member of the runtime's global object that is used here. */
declare const Bun: { YAML: { parse(text: string): unknown } };

const world: World = {
  kernel: linuxKernel,
  host: hostPrograms(process.env["PATH"]),
  connect: (server, whileWaiting) => leanTransport({ server, connect: connectByRuntime, whileWaiting }),
  kubeconfig: { readText: (path) => readText(libcFiles, path), parseYaml: (text) => Bun.YAML.parse(text) },
  warn: (line) => writeAll(libcFiles, STDERR, line),
  now: () => new Date(),
  elapsed: () => performance.now(),
  onIdle: (callback) => process.once("beforeExit", callback),
  identify: libcFiles.identify,
};

dispatch(process.env, () => readAll(libcFiles, STDIN), world).then(({ stdout, stderr, status, record }) => {
  writeAll(libcFiles, STDERR, stderr);
  const isTold = writeAll(libcFiles, STDOUT, stdout === "" ? "" : `${stdout}\n`);
  if (record !== undefined) appendLine(libcFiles, CALL_LOG, record);
  exitNow(isTold ? status : 1);
});
