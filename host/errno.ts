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
    super(`${operation}: ${code}, ${errnoMeaning(errno) ?? "try again"}${errno === Errno.EPERM ? NEEDED : ""}`);
    this.code = code;
  }
}

/** The result of a system call. @throws SystemError if it is negative */
export function checked(operation: string, result: number): number {
  if (result < 0) throw new SystemError(operation, -result);
  return result;
}

/**
 * The numbers of errors that x64 and arm64 share, from the kernel's asm-generic/errno.h, and what they mean if the name
 * does not say it: for files in Node's words, and for sockets.
 */
const ERRORS = {
  EPERM: [1, "operation not permitted"],
  ENOENT: [2, "no such file or directory"],
  ESRCH: [3],
  EINTR: [4],
  EIO: [5, "i/o error"],
  ENXIO: [6],
  E2BIG: [7],
  ENOEXEC: [8],
  EBADF: [9, "bad file descriptor"],
  ECHILD: [10],
  EAGAIN: [11],
  ENOMEM: [12, "not enough memory"],
  EACCES: [13, "permission denied"],
  EFAULT: [14],
  EBUSY: [16, "resource busy or locked"],
  EEXIST: [17, "file already exists"],
  EXDEV: [18, "cross-device link not permitted"],
  ENODEV: [19],
  ENOTDIR: [20, "not a directory"],
  EISDIR: [21, "illegal operation on a directory"],
  EINVAL: [22, "invalid argument"],
  ENFILE: [23, "file table overflow"],
  EMFILE: [24, "too many open files"],
  ETXTBSY: [26, "text file is busy"],
  EFBIG: [27, "file too large"],
  ENOSPC: [28, "no space left on device"],
  ESPIPE: [29],
  EROFS: [30, "read-only file system"],
  EMLINK: [31, "too many links"],
  EPIPE: [32, "the reader is gone"],
  ENAMETOOLONG: [36, "name too long"],
  ENOLCK: [37],
  ENOSYS: [38],
  ENOTEMPTY: [39, "directory not empty"],
  ELOOP: [40, "too many symbolic links encountered"],
  EPROTO: [71],
  EMSGSIZE: [90, "there are more rules than the kernel takes at once"],
  EPROTONOSUPPORT: [93, "the kernel has no netfilter netlink"],
  EOPNOTSUPP: [95, "the kernel does not support it"],
  EAFNOSUPPORT: [97, "the kernel does not support the address family"],
  EADDRINUSE: [98, "the port is taken"],
  EADDRNOTAVAIL: [99],
  ENETDOWN: [100],
  ENETUNREACH: [101],
  ECONNABORTED: [103],
  ECONNRESET: [104],
  ENOBUFS: [105, "the kernel's answer does not fit into the socket's buffer"],
  ENOTCONN: [107],
  ETIMEDOUT: [110, "timed out"],
  ECONNREFUSED: [111, "nothing listens there"],
  EHOSTDOWN: [112],
  EHOSTUNREACH: [113],
  ESTALE: [116, "stale file handle"],
  EDQUOT: [122, "disk quota exceeded"],
} as const;
type Name = keyof typeof ERRORS;

const errors = Object.entries(ERRORS) as readonly (readonly [Name, readonly [number: number, meaning?: string]])[];

export const Errno = Object.fromEntries(errors.map(([name, [number]]) => [name, number])) as {
  readonly [Each in Name]: (typeof ERRORS)[Each][0];
};

/** For the plugin's calls. */
const NEEDED = " (CAP_NET_ADMIN and CAP_SYS_ADMIN are needed)";

const errorOf = (errno: number) => errors.find(([, [number]]) => number === errno);

/** The name of a number: `ENOENT`. */
export const errnoName = (errno: number): string => errorOf(errno)?.[0] ?? `E${errno}`;

/** The meaning of a number, if it says more than the name. */
export const errnoMeaning = (errno: number): string | undefined => errorOf(errno)?.[1][1];
