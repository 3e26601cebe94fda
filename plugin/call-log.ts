import { type Files, Open } from "./files/port";

/** Where calls are recorded, if the installer made the directory. */
export const CALL_LOG = "/run/linkerd-cni/plugin.log";

const MAX_BYTES = 4 * 1024 * 1024;
const FLAGS = Open.writeOnly | Open.append | Open.create | Open.nonBlocking | Open.closeOnExec;

/** Whether a path still leads to an open file: another call may have set it aside. */
function leadsTo(files: Files, path: string, descriptor: number): boolean {
  const [found, own] = [path, `/proc/self/fd/${descriptor}`].map(files.identify);
  return found?.inode === own?.inode && found?.device === own?.device;
}

/**
 * Appends a line; a log that is full is set aside as `.1`, in place of the one before. It never fails: a call's
 * result does not depend on its record.
 */
export function appendLine(files: Files, path: string, line: string): void {
  let descriptor: number | undefined;
  try {
    descriptor = files.open(path, FLAGS);
    files.write(descriptor, Buffer.from(line));
    if (files.size(descriptor) >= MAX_BYTES && leadsTo(files, path, descriptor)) files.rename(path, `${path}.1`);
  } catch {
    // No directory, no room, no permission: no record.
  } finally {
    if (descriptor !== undefined) files.close(descriptor);
  }
}
