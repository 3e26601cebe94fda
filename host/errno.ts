/** A system call that failed. */
export class SystemError extends Error {
  override readonly name = "SystemError";
  /** The name of the number, as in Node's errors. */
  readonly code: string;
  constructor(
    /** The failed action with its object. */
    readonly operation: string,
    /** The kernel's number, positive. */
    readonly errno: number,
  ) {
    const code = errnoName(errno);
    super(`${operation}: ${code}, ${errnoMeaning(code) ?? "try again"}${errno === Errno.EPERM ? NEEDED : ""}`);
    this.code = code;
  }
}

/** The result of a system call. @throws SystemError if it is negative */
export function checked(operation: string, result: number): number {
  if (result < 0) throw new SystemError(operation, -result);
  return result;
}

/** The numbers of errors that x64 and arm64 share, from the kernel's asm-generic/errno.h. */
export const Errno = {
  EPERM: 1,
  ENOENT: 2,
  ESRCH: 3,
  EINTR: 4,
  EIO: 5,
  ENXIO: 6,
  E2BIG: 7,
  ENOEXEC: 8,
  EBADF: 9,
  ECHILD: 10,
  EAGAIN: 11,
  ENOMEM: 12,
  EACCES: 13,
  EFAULT: 14,
  EBUSY: 16,
  EEXIST: 17,
  EXDEV: 18,
  ENODEV: 19,
  ENOTDIR: 20,
  EISDIR: 21,
  EINVAL: 22,
  ENFILE: 23,
  EMFILE: 24,
  ETXTBSY: 26,
  EFBIG: 27,
  ENOSPC: 28,
  ESPIPE: 29,
  EROFS: 30,
  EMLINK: 31,
  EPIPE: 32,
  ENAMETOOLONG: 36,
  ENOLCK: 37,
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
  ENETDOWN: 100,
  ENETUNREACH: 101,
  ECONNABORTED: 103,
  ECONNRESET: 104,
  ENOBUFS: 105,
  ENOTCONN: 107,
  ETIMEDOUT: 110,
  ECONNREFUSED: 111,
  EHOSTDOWN: 112,
  EHOSTUNREACH: 113,
  ESTALE: 116,
  EDQUOT: 122,
} as const;

/** For the plugin's calls. */
const NEEDED = " (CAP_NET_ADMIN and CAP_SYS_ADMIN are needed)";

/** What they mean for files, in Node's words, and for sockets. */
const meanings: Readonly<Record<string, string>> = {
  EPERM: "operation not permitted",
  ENOENT: "no such file or directory",
  EIO: "i/o error",
  EBADF: "bad file descriptor",
  ENOMEM: "not enough memory",
  EACCES: "permission denied",
  EBUSY: "resource busy or locked",
  EEXIST: "file already exists",
  EXDEV: "cross-device link not permitted",
  ENOTDIR: "not a directory",
  EISDIR: "illegal operation on a directory",
  EINVAL: "invalid argument",
  ENFILE: "file table overflow",
  EMFILE: "too many open files",
  ETXTBSY: "text file is busy",
  EFBIG: "file too large",
  ENOSPC: "no space left on device",
  EROFS: "read-only file system",
  EMLINK: "too many links",
  EPIPE: "the reader is gone",
  ENAMETOOLONG: "name too long",
  ENOTEMPTY: "directory not empty",
  ELOOP: "too many symbolic links encountered",
  EMSGSIZE: "there are more rules than the kernel takes at once",
  ENOBUFS: "the kernel's answer does not fit into the socket's buffer",
  EPROTONOSUPPORT: "the kernel has no netfilter netlink",
  EOPNOTSUPP: "the kernel does not support it",
  EAFNOSUPPORT: "the kernel does not support the address family",
  EADDRINUSE: "the port is taken",
  ETIMEDOUT: "timed out",
  ECONNREFUSED: "nothing listens there",
  ESTALE: "stale file handle",
  EDQUOT: "disk quota exceeded",
};

/** The name of a number: `ENOENT`. */
export function errnoName(errno: number): string {
  return Object.entries(Errno).find(([, number]) => number === errno)?.[0] ?? `E${errno}`;
}

/** The meaning of a name, if it says more than the name. */
export const errnoMeaning = (name: string): string | undefined => meanings[name];
