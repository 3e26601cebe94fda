/** Whether a directory is opened, by inotify. */
import { checked, EVENT_SIZE, INOTIFY_FLAGS } from "./engine/fs";
import { host } from "./engine/host";
import { ready } from "./engine/loop";

/** Bytes of events that are read at a time. */
const CHUNK = 128 * 1024;

const OPENED = 0x20 | 0x01000000; // IN_OPEN, IN_ONLYDIR
const IN_ISDIR = 0x40000000;

/** Whether an event is of the directory itself; events of entries have a name. */
function isOfItself(events: Uint8Array): boolean {
  const view = new DataView(events.buffer, events.byteOffset, events.length);
  for (let at = 0; at < events.length; at += EVENT_SIZE + view.getUint32(at + 12, true))
    if ((view.getUint32(at + 4, true) & IN_ISDIR) !== 0 && view.getUint32(at + 12, true) === 0) return true;
  return false;
}

/** Reads events until there is one of the directory itself. */
async function untilOpened(descriptor: number, signal: AbortSignal): Promise<void> {
  const bytes = new Uint8Array(CHUNK);
  do await ready(descriptor, "read", signal);
  while (!isOfItself(bytes.subarray(0, checked(host.read(descriptor, bytes), "watch"))));
}

/**
 * Whether a process opens a directory, or a file in it, after the watch has begun. @param meanwhile an action of this
 * process after the watch has begun, which must not open the directory @throws if the kernel refuses the watch (ENOSPC,
 * EMFILE)
 */
export async function isOpened(
  directory: string,
  meanwhile: () => Promise<unknown>,
  withinMs: number,
): Promise<boolean> {
  const descriptor = checked(host.inotifyInit(INOTIFY_FLAGS), "watch", directory);
  const over = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    checked(host.inotifyAdd(descriptor, directory, OPENED), "watch", directory);
    await meanwhile();
    timer = setTimeout(() => over.abort(), withinMs);
    return await untilOpened(descriptor, over.signal).then(
      () => true,
      () => false,
    );
  } finally {
    clearTimeout(timer);
    host.close(descriptor);
  }
}
