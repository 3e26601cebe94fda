import { identify, Open, openFile, sameFile, sizeOf } from "./host/files";
import type { Host } from "./host/port";

/** Where calls are recorded, if the installer made the directory. */
export const CALL_LOG = "/run/linkerd-cni/plugin.log";

const MAX_BYTES = 4 * 1024 * 1024;
const FLAGS = Open.writeOnly | Open.append | Open.create | Open.nonBlocking;

/** Whether a path still leads to an open file: another call may have set it aside. */
function leadsTo(host: Host, path: string, descriptor: number): boolean {
  return sameFile(identify(host, path), identify(host, `/proc/self/fd/${descriptor}`));
}

/**
 * Appends a line; a log that is full is renamed to `.1`, in place of the one before. It never fails: a call's result
 * does not depend on its record.
 */
export function appendLine(host: Host, path: string, line: string): void {
  let descriptor: number | undefined;
  try {
    descriptor = openFile(host, path, FLAGS);
    host.write(descriptor, host.encode(line));
    if (sizeOf(host, descriptor) >= MAX_BYTES && leadsTo(host, path, descriptor)) host.rename(path, `${path}.1`);
  } catch {
    // No directory, no room, no permission: no record.
  } finally {
    if (descriptor !== undefined) host.close(descriptor);
  }
}
