/** What the plugin asks of the kernel, so that everything above it runs without one. */
export interface Kernel {
  /** Gets ready for the other two, so that they are quick. Nothing depends on it. */
  prepare(): void;
  /** Moves the calling thread into the network namespace at `path`. @throws SystemError */
  enterNamespace(path: string): void;
  /** Sends one datagram to netfilter and returns every datagram it answers at once. @throws SystemError */
  exchange(request: Uint8Array): readonly Uint8Array[];
}

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

export const Errno = {
  EPERM: 1,
  ENOENT: 2,
  EAGAIN: 11,
  EACCES: 13,
  EEXIST: 17,
  EINVAL: 22,
  EMSGSIZE: 90,
  EPROTONOSUPPORT: 93,
  EOPNOTSUPP: 95,
  EAFNOSUPPORT: 97,
  ENOBUFS: 105,
} as const;

const meanings: Readonly<Record<number, string>> = {
  [Errno.EPERM]: "operation not permitted (CAP_NET_ADMIN and CAP_SYS_ADMIN are needed)",
  [Errno.ENOENT]: "no such file, table or chain",
  [Errno.EACCES]: "permission denied",
  [Errno.EEXIST]: "exists already",
  [Errno.EINVAL]: "invalid argument",
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
