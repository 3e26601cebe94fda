/** Errors as in Node's modules, with a code at the beginning of the message. */
import { Errno } from "../../host/errno";

/** Numbers that x64 and arm64 share besides those of {@link Errno}, from the kernel's asm-generic/errno.h. */
const MORE = {
  ESRCH: 3,
  ENXIO: 6,
  E2BIG: 7,
  ENOEXEC: 8,
  ECHILD: 10,
  EFAULT: 14,
  ENOTBLK: 15,
  EBUSY: 16,
  EXDEV: 18,
  ENODEV: 19,
  ENFILE: 23,
  ETXTBSY: 26,
  ESPIPE: 29,
  EMLINK: 31,
  ERANGE: 34,
  EDEADLK: 35,
  ENAMETOOLONG: 36,
  ENOLCK: 37,
  ENODATA: 61,
  EOVERFLOW: 75,
  EILSEQ: 84,
  ENOTSOCK: 88,
  ENETDOWN: 100,
  ENETRESET: 102,
  ECONNABORTED: 103,
  EISCONN: 106,
  ENOTCONN: 107,
  EHOSTDOWN: 112,
  EALREADY: 114,
  EINPROGRESS: 115,
  ESTALE: 116,
  EDQUOT: 122,
  ENOMEDIUM: 123,
  ECANCELED: 125,
} as const;

const names = new Map<number, string>(Object.entries({ ...Errno, ...MORE }).map(([name, number]) => [number, name]));

/** The kernel's messages for errors of the calls here. */
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
  ENAMETOOLONG: "name too long",
  ENOTEMPTY: "directory not empty",
  ELOOP: "too many symbolic links encountered",
  ESTALE: "stale file handle",
  EDQUOT: "disk quota exceeded",
};

/** The name of a number: `ENOENT`. */
export const nameOf = (errno: number): string => names.get(errno) ?? `E${errno}`;

/** The error of a failed call: `ENOENT: no such file or directory, open '/x'`. */
export function failed(errno: number, what: string): Error & { readonly code: string } {
  const code = nameOf(errno);
  const meaning = meanings[code];
  return Object.assign(new Error(`${code}: ${meaning === undefined ? "" : `${meaning}, `}${what}`), { code });
}
