import { ptr } from "bun:ffi";
import { checked, cString, libc } from "../libc";
import type { Files } from "./port";

const OWNER_ONLY = 0o600;
const SEEK_END = 2;
const AT_FDCWD = -100;
const STATX_INO = 0x100;
/** Where the members of `struct statx` stand, from the kernel's linux/stat.h. */
const STATX = { size: 0x100, inode: 0x20, major: 0x88, minor: 0x8c };
/** A view of no bytes has no address. */
const addressOf = (bytes: Uint8Array) => (bytes.length === 0 ? null : ptr(bytes));

export const libcFiles: Files = {
  open: (path, flags) => checked(`open ${path}`, libc.open(ptr(cString(path)), flags, OWNER_ONLY)),
  read: (descriptor, buffer) =>
    checked(`read descriptor ${descriptor}`, libc.read(descriptor, addressOf(buffer), buffer.length)),
  write: (descriptor, bytes) =>
    checked(`write to descriptor ${descriptor}`, libc.write(descriptor, addressOf(bytes), bytes.length)),
  size: (descriptor) => checked(`measure descriptor ${descriptor}`, libc.lseek(descriptor, 0, SEEK_END)),
  close: (descriptor) => void libc.close(descriptor),
  rename: (from, to) => void checked(`rename ${from}`, libc.rename(ptr(cString(from)), ptr(cString(to)))),
  identify(path) {
    const found = Buffer.alloc(STATX.size);
    checked(`look at ${path}`, libc.statx(AT_FDCWD, ptr(cString(path)), 0, STATX_INO, ptr(found)));
    const device = `${found.readUInt32LE(STATX.major)}:${found.readUInt32LE(STATX.minor)}`;
    return { device, inode: found.readBigUInt64LE(STATX.inode) };
  },
};
