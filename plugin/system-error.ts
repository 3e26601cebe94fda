/** A system call that failed. */
export class SystemError extends Error {
  override readonly name = "SystemError";
  constructor(
    /** What was tried, with its object. */
    readonly operation: string,
    /** The kernel's number, positive. */
    readonly errno: number,
  ) {
    super(`${operation}: ${errnoText(errno)}`);
  }
}

/** Numbers that x64 and arm64 share, from the kernel's asm-generic/errno.h. */
export const Errno = {
  EPERM: 1,
  ENOENT: 2,
  EINTR: 4,
  EIO: 5,
  EBADF: 9,
  EAGAIN: 11,
  EACCES: 13,
  EEXIST: 17,
  ENOTDIR: 20,
  EISDIR: 21,
  EINVAL: 22,
  ENOSPC: 28,
  EROFS: 30,
  EPIPE: 32,
  ELOOP: 40,
  EMSGSIZE: 90,
  EPROTONOSUPPORT: 93,
  EOPNOTSUPP: 95,
  EAFNOSUPPORT: 97,
  ENOBUFS: 105,
} as const;

const meanings: Readonly<Record<number, string>> = {
  [Errno.EPERM]: "operation not permitted (CAP_NET_ADMIN and CAP_SYS_ADMIN are needed)",
  [Errno.ENOENT]: "it is not there",
  [Errno.EIO]: "input or output failed",
  [Errno.EBADF]: "it is not open",
  [Errno.EACCES]: "permission denied",
  [Errno.EEXIST]: "exists already",
  [Errno.ENOTDIR]: "part of the path is no directory",
  [Errno.EISDIR]: "it is a directory",
  [Errno.EINVAL]: "invalid argument",
  [Errno.ENOSPC]: "no space is left",
  [Errno.EROFS]: "the file system is read-only",
  [Errno.EPIPE]: "nobody reads it any more",
  [Errno.ELOOP]: "too many symbolic links",
  [Errno.EMSGSIZE]: "there are more rules than the kernel takes at once",
  [Errno.ENOBUFS]: "the kernel had more to say than there was room for",
  [Errno.EPROTONOSUPPORT]: "the kernel has no netfilter netlink",
  [Errno.EOPNOTSUPP]: "the kernel does not support it",
  [Errno.EAFNOSUPPORT]: "the kernel does not support the address family",
};

function errnoText(errno: number): string {
  const name = Object.entries(Errno).find(([, value]) => value === errno)?.[0];
  return name === undefined ? `error ${errno}` : `${name}, ${meanings[errno] ?? "try again"}`;
}
