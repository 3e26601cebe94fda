/** Files and descriptors from container runtimes: pipes, files, and non-blocking ones. */
import { shortened } from "../cni/errors";
import { checked, Errno, SystemError } from "./errno";
import type { Host } from "./port";

/** Flags of poll(2). */
export const Poll = { input: 1, output: 4 } as const;

/** Flags of open(2) that x64 and arm64 share, from the kernel's asm-generic/fcntl.h. */
export const Open = {
  readOnly: 0x0,
  writeOnly: 0x1,
  create: 0x40,
  append: 0x400,
  nonBlocking: 0x800,
  closeOnExec: 0x80000,
} as const;

/** Flag of unlinkat(2). */
export const AT_REMOVEDIR = 0x200;

const OWNER_ONLY = 0o600;
const SEEK_END = 2;
const FIRST_CHUNK = 16384;
const FOREVER = Number.POSITIVE_INFINITY;

/** Opens a file; a created file is only for its owner. @throws SystemError */
export function openFile(host: Host, path: string, flags: number): number {
  return checked(`open ${shortened(path)}`, host.open(path, flags | Open.closeOnExec, OWNER_ONLY));
}

/** Bytes of an open file. @throws SystemError */
export function sizeOf(host: Host, descriptor: number): number {
  return checked(`seek in descriptor ${descriptor}`, host.seek(descriptor, 0, SEEK_END));
}

/** Repeats a call interrupted by a signal, or with a descriptor that was not ready. */
function retried(host: Host, descriptor: number, events: number, call: () => number): number {
  for (;;) {
    const result = call();
    if (result === -Errno.EAGAIN) host.poll(descriptor, events, FOREVER);
    else if (result !== -Errno.EINTR) return result;
  }
}

/** Nothing that a program here reads whole is larger: another file has taken its place. */
const MAX_FILE_BYTES = 4 * 1024 * 1024;

/**
 * Reads up to the end of input. Returns a negated errno if the kernel refuses, or EFBIG beyond {@link MAX_FILE_BYTES}.
 */
export function readBytes(host: Host, descriptor: number): Uint8Array | number {
  let buffer = new Uint8Array(FIRST_CHUNK);
  let size = 0;
  for (;;) {
    if (size > MAX_FILE_BYTES) return -Errno.EFBIG;
    if (size === buffer.length) {
      const larger = new Uint8Array(2 * size);
      larger.set(buffer);
      buffer = larger;
    }
    const free = buffer.subarray(size);
    const got = retried(host, descriptor, Poll.input, () => host.read(descriptor, free));
    if (got < 0) return got;
    if (got === 0) return buffer.subarray(0, size);
    size += got;
  }
}

/** The text up to the end of input. @throws SystemError */
export function readAll(host: Host, descriptor: number): string {
  const bytes = readBytes(host, descriptor);
  if (typeof bytes !== "number") return host.decode(bytes);
  throw new SystemError(`read descriptor ${descriptor}`, -bytes);
}

/** The text of a file. @throws SystemError */
export function readText(host: Host, path: string): string {
  const descriptor = openFile(host, path, Open.readOnly);
  try {
    return readAll(host, descriptor);
  } finally {
    host.close(descriptor);
  }
}

/** Writes a text; false if not all of it could be written. */
export function writeAll(host: Host, descriptor: number, text: string): boolean {
  if (text === "") return true;
  const bytes = host.encode(text);
  for (let at = 0; at < bytes.length; ) {
    const rest = bytes.subarray(at);
    const written = retried(host, descriptor, Poll.output, () => host.write(descriptor, rest));
    if (written < 0) return false;
    at += written;
  }
  return true;
}

/** The identity of a file. */
interface FileId {
  readonly device: string;
  readonly inode: string;
}

/** Offsets of the members of `struct statx`, from the kernel's linux/stat.h. */
const STATX = { size: 256, inode: 0x20, changed: 0x60, deviceMajor: 0x88, deviceMinor: 0x8c };
const STATX_INO = 0x100;
const STATX_CTIME = 0x80;

function look(host: Host, path: string, mask: number): DataView {
  const found = new DataView(new ArrayBuffer(STATX.size));
  checked(`look at ${shortened(path)}`, host.statx(path, 0, mask, new Uint8Array(found.buffer)));
  return found;
}

/** When a file, its name or its attributes last changed, in whole seconds since 1970. @throws SystemError */
export const changedAt = (host: Host, path: string): number =>
  Number(look(host, path, STATX_CTIME).getBigInt64(STATX.changed, true));

/** The file of a path. @throws SystemError */
export function identify(host: Host, path: string): FileId {
  const found = look(host, path, STATX_INO);
  const number = (at: number) => found.getUint32(at, true);
  return {
    device: `${number(STATX.deviceMajor)}:${number(STATX.deviceMinor)}`,
    inode: `${number(STATX.inode + 4)}:${number(STATX.inode)}`,
  };
}

/** The file of a descriptor. @throws SystemError */
export const identifyOpen = (host: Host, descriptor: number) => identify(host, `/proc/self/fd/${descriptor}`);
