/** A system call that failed. */
export class SystemError extends Error {
  override readonly name = "SystemError";
  constructor(
    /** The failed action with its object. */
    readonly operation: string,
    /** The kernel's number, positive. */
    readonly errno: number,
  ) {
    super(`${operation}: ${errnoText(errno)}`);
  }

  /** The name of the number, as in Node's errors. */
  get code(): string {
    return errnoName(this.errno) ?? `error ${this.errno}`;
  }
}

/** The result of a system call. @throws SystemError if it is negative */
export function checked(operation: string, result: number): number {
  if (result < 0) throw new SystemError(operation, -result);
  return result;
}

/** Numbers that x64 and arm64 share, from the kernel's asm-generic/errno.h. */
export const Errno = {
  EPERM: 1,
  ENOENT: 2,
  EINTR: 4,
  EIO: 5,
  EBADF: 9,
  EAGAIN: 11,
  ENOMEM: 12,
  EACCES: 13,
  EEXIST: 17,
  ENOTDIR: 20,
  EISDIR: 21,
  EINVAL: 22,
  EMFILE: 24,
  EFBIG: 27,
  ENOSPC: 28,
  EROFS: 30,
  EPIPE: 32,
  ENOSYS: 38,
  ENOTEMPTY: 39,
  ELOOP: 40,
  EPROTO: 71,
  EMSGSIZE: 90,
  EPROTONOSUPPORT: 93,
  EOPNOTSUPP: 95,
  EAFNOSUPPORT: 97,
  EADDRINUSE: 98,
  EADDRNOTAVAIL: 99,
  ENETUNREACH: 101,
  ECONNRESET: 104,
  ENOBUFS: 105,
  ETIMEDOUT: 110,
  ECONNREFUSED: 111,
  EHOSTUNREACH: 113,
} as const;

const meanings: Readonly<Record<number, string>> = {
  [Errno.EPERM]: "operation not permitted (CAP_NET_ADMIN and CAP_SYS_ADMIN are needed)",
  [Errno.ENOENT]: "no such file",
  [Errno.EIO]: "input/output error",
  [Errno.EBADF]: "the descriptor is not open",
  [Errno.ENOMEM]: "out of memory",
  [Errno.EACCES]: "permission denied",
  [Errno.EEXIST]: "exists already",
  [Errno.ENOTDIR]: "part of the path is not a directory",
  [Errno.EISDIR]: "is a directory",
  [Errno.EINVAL]: "invalid argument",
  [Errno.EMFILE]: "too many open files",
  [Errno.EFBIG]: "it is too large",
  [Errno.ENOSPC]: "no space left",
  [Errno.EROFS]: "the file system is read-only",
  [Errno.EPIPE]: "the reader is gone",
  [Errno.ELOOP]: "too many symbolic links",
  [Errno.EMSGSIZE]: "there are more rules than the kernel takes at once",
  [Errno.ENOBUFS]: "the kernel's answer does not fit into the socket's buffer",
  [Errno.EPROTONOSUPPORT]: "the kernel has no netfilter netlink",
  [Errno.EOPNOTSUPP]: "the kernel does not support it",
  [Errno.EAFNOSUPPORT]: "the kernel does not support the address family",
  [Errno.EADDRINUSE]: "the port is taken",
  [Errno.ECONNREFUSED]: "nothing listens there",
  [Errno.ETIMEDOUT]: "timed out",
};

const errnoName = (errno: number) => Object.entries(Errno).find(([, value]) => value === errno)?.[0];

function errnoText(errno: number): string {
  const name = errnoName(errno);
  return name === undefined ? `error ${errno}` : `${name}, ${meanings[errno] ?? "try again"}`;
}
