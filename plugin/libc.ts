/// <reference types="bun-types/ffi" />
/** The C library: reaching it takes half a millisecond at every pod start, and Node's own modules one more. */
import { dlopen, read } from "bun:ffi";
import { SystemError } from "./system-error";

export const { symbols: libc } = dlopen("libc.so.6", {
  open: { args: ["ptr", "i32", "u32"], returns: "i32" },
  read: { args: ["i32", "ptr", "u64"], returns: "i64" },
  write: { args: ["i32", "ptr", "u64"], returns: "i64" },
  lseek: { args: ["i32", "i64", "i32"], returns: "i64" },
  close: { args: ["i32"], returns: "i32" },
  rename: { args: ["ptr", "ptr"], returns: "i32" },
  statx: { args: ["i32", "ptr", "i32", "u32", "ptr"], returns: "i32" },
  setns: { args: ["i32", "i32"], returns: "i32" },
  socket: { args: ["i32", "i32", "i32"], returns: "i32" },
  setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" },
  send: { args: ["i32", "ptr", "u64", "i32"], returns: "i64" },
  recv: { args: ["i32", "ptr", "u64", "i32"], returns: "i64" },
  __errno_location: { args: [], returns: "ptr" },
  _exit: { args: ["i32"], returns: "void" },
});

/** Why the last call failed. */
export function errno(): number {
  const location = libc.__errno_location();
  return location === null ? 0 : read.i32(location, 0);
}

/** The result of a system call. @throws SystemError where it is negative */
export function checked(operation: string, result: number | bigint): number {
  if (result < 0) throw new SystemError(operation, errno());
  return Number(result);
}

/** A path as C reads it. */
export const cString = (text: string): Buffer => Buffer.from(`${text}\0`);

/** Leaves at once, without the runtime's own clean-up. */
export function exitNow(status: number): void {
  libc._exit(status);
}
