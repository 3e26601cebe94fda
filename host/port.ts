/**
 * The interface of a program to its machine: system calls, TLS, keys, programs. The executable's C part
 * (host/*.c) provides it as the global `host`; tests provide a fake.
 *
 * A failed call returns a negated errno. Texts are passed as UTF-8; malformed parts become U+FFFD.
 */
export interface Host {
  /** The value of an environment variable; undefined if it is not set. */
  env(name: string): string | undefined;
  /** Milliseconds since the process started, with fractions, of a monotonic clock. */
  elapsed(): number;
  encode(text: string): Uint8Array;
  decode(bytes: Uint8Array): string;

  /** Descriptor, or negated errno. `mode` is for a created file. */
  open(path: string, flags: number, mode: number): number;
  /** Bytes read, 0 at the end. */
  read(descriptor: number, into: Uint8Array): number;
  /** Bytes written. */
  write(descriptor: number, bytes: Uint8Array): number;
  /** The new offset. */
  seek(descriptor: number, offset: number, whence: number): number;
  close(descriptor: number): number;
  /** unlinkat(2): a file, or with AT_REMOVEDIR an empty directory. */
  unlink(path: string, flags: number): number;
  /** access(2) with F_OK: 0 if the path exists. */
  access(path: string): number;
  /** statx(2): fills `into` (256 bytes, the kernel's `struct statx`). */
  statx(path: string, flags: number, mask: number, into: Uint8Array): number;
  setns(descriptor: number, type: number): number;
  socket(domain: number, type: number, protocol: number): number;
  /** connect(2) and bind(2): `address` is a `struct sockaddr`. */
  connect(socket: number, address: Uint8Array): number;
  bind(socket: number, address: Uint8Array): number;
  listen(socket: number, backlog: number): number;
  /** accept4(2): the descriptor of the connection. */
  accept(socket: number, flags: number): number;
  setsockopt(socket: number, level: number, option: number, value: Uint8Array): number;
  /** send(2) and recv(2). */
  send(socket: number, bytes: Uint8Array, flags: number): number;
  receive(socket: number, into: Uint8Array, flags: number): number;
  /** poll(2) of one descriptor; sleeps with -1. Returns the events, 0 at the timeout. */
  poll(descriptor: number, events: number, milliseconds: number): number;
  /** poll(2) of an aligned array of `struct pollfd`; fills in `revents`. Returns the number of entries with events. */
  pollAll(descriptors: Uint8Array, milliseconds: number): number;

  /** Runs a program (an absolute path) with only this environment; SIGKILL ends it at the timeout. */
  run(program: string, args: readonly string[], input: string, env: readonly string[], milliseconds: number): HostRun;
  /** Ends the process at once. */
  exit(status: number): never;
}

/** Calls for programs other than the plugin, which starts without them. Calls without a comment are system calls. */
export interface LastingHost extends Host, TlsHost {
  /** The arguments after the program's name. */
  args(): readonly string[];
  /** Each environment variable, as `NAME=value`. */
  environment(): readonly string[];
  /** Ends the program with a message if the engine's memory exceeds this number of bytes. @default 256 MiB */
  limitMemory(bytes: number): void;
  /** Whether bytes are equal. */
  isEqual(left: Uint8Array, right: Uint8Array): boolean;
  /** Runs ready jobs of promises. @throws the reason of an unhandled rejection */
  runJobs(): void;
  /** fork(2): 0 in the child. */
  fork(): number;
  /** Addresses of a host name in a family, as texts; empty: none. It may take long: its name servers have their own time. */
  resolve(name: string, family: number): readonly string[];
  /** The exports of a script embedded beside the main one, for modules loaded on demand. */
  load<Name extends keyof Scripts>(name: Name): Scripts[Name];

  pread(descriptor: number, into: Uint8Array, offset: number): number;
  getdents(descriptor: number, into: Uint8Array): number;
  fsync(descriptor: number): number;
  fchmod(descriptor: number, mode: number): number;
  closeRange(first: number, last: number): number;
  /** pipe2(2): `into` receives two 32-bit numbers, the read end and the write end. */
  pipe(into: Uint8Array, flags: number): number;
  /** access(2) */
  accessAs(path: string, mode: number): number;
  /** statfs(2): fills `into` (256 bytes, of which the kernel's `struct statfs` has 120). */
  statfs(path: string, into: Uint8Array): number;
  mkdir(path: string, mode: number): number;
  symlink(target: string, path: string): number;
  rename(from: string, to: string): number;
  /** renameat2(2). */
  renameAs(from: string, to: string, flags: number): number;
  link(existing: string, path: string): number;
  /** Number of bytes of the link's target in `into`. */
  readlink(path: string, into: Uint8Array): number;
  chown(path: string, uid: number, gid: number): number;
  chdir(path: string): number;
  inotifyInit(flags: number): number;
  inotifyAdd(descriptor: number, path: string, mask: number): number;
  inotifyRemove(descriptor: number, watch: number): number;
  getsockopt(socket: number, level: number, option: number, into: Uint8Array): number;
  /** Fills `into` with a `struct sockaddr`. */
  getsockname(socket: number, into: Uint8Array): number;
  getrandom(into: Uint8Array, flags: number): number;
  /** rt_sigprocmask(2) and signalfd4(2): `mask` is 8 bytes, and `size` is 8. */
  sigprocmask(how: number, mask: Uint8Array, size: number): number;
  signalfd(descriptor: number, mask: Uint8Array, flags: number): number;
  prctl(option: number, value: number): number;
  kill(pid: number, signal: number): number;
  /** wait4(2): `status` is 8 bytes, of which the first 4 are filled. */
  wait(pid: number, status: Uint8Array, options: number): number;
}

/** The scripts in host/scripts, by their file names. */
export interface Scripts {
  certificates: typeof import("./scripts/certificates");
}

/** TLS connections of an event loop, and keys. */
interface TlsHost {
  /**
   * A TLS client on a connected non-blocking socket, which the connection takes over; after a failure the caller keeps
   * the socket. The connection ends when it is garbage-collected.
   * @param name host name or address that the server's certificate must be for
   * @param ca PEM certificates that it must chain to; empty: none is trusted
   */
  tlsClient(socket: number, name: string, ca: string): TlsConnection | TlsFailure;
  /** A certificate (PEM: the server's first, then intermediates) with its key; or why it cannot be used. */
  tlsServer(certificate: string, key: string): TlsIdentity | string;
  /** What its certificate is valid for; `name` is a DNS name. */
  tlsValidity(identity: TlsIdentity, name: string): TlsValidity;
  /** A TLS server on an accepted non-blocking connection, which it takes over. It refers to the identity. */
  tlsAccept(socket: number, identity: TlsIdentity): TlsConnection;
  /**
   * Continues a handshake: undefined once it is complete, the event to wait for, or why it failed.
   * @param judge returns the problem of a chain that the TLS library trusts, or an empty text; called if the chain has
   * extensions that the library does not check. DER, the server's certificate first. A server's connection needs none.
   */
  tlsHandshake(
    connection: TlsConnection,
    judge?: (chain: readonly Uint8Array[]) => string,
  ): undefined | TlsWants | TlsFailure;
  /** Bytes sent, at least one; if it must wait, the next call must have the same bytes. */
  tlsWrite(connection: TlsConnection, bytes: Uint8Array): number | TlsWants;
  /** Bytes received; 0 if the other end ended the connection. Read until it must wait before polling the socket. */
  tlsRead(connection: TlsConnection, into: Uint8Array): number | TlsWants;
  /** Ends a connection, and notifies the other end if the socket accepts that at once. */
  tlsEnd(connection: TlsConnection): void;

  /** SHA-2 of that many bits: 256, 384 or 512. */
  hash(bytes: Uint8Array, bits: number): Uint8Array;
  /** A new key of P-256: 32 bytes of its number, and 65 of its point (0x04, x, y). */
  keyGenerate(): Uint8Array;
  /** SubjectPublicKeyInfo (DER) of a private key (PEM). @throws TypeError in the TLS library's words */
  keyPublic(key: string): Uint8Array;
  /** Signs the SHA-2 of some bytes: ECDSA (DER) or RSA (PKCS#1 v1.5). */
  keySign(key: string, bytes: Uint8Array, bits: number): Uint8Array;
}

declare const handle: unique symbol;
/** An encrypted connection of the C part. */
export interface TlsConnection {
  readonly [handle]: "connection";
}
/** The certificate of a TLS server, which its connections share. */
export interface TlsIdentity {
  readonly [handle]: "identity";
}
/** When a certificate is valid, in milliseconds since 1970, and whether it is for a name. */
export interface TlsValidity {
  readonly validFrom: number;
  readonly validTo: number;
  readonly isForName: boolean;
}
/** The event that the socket must wait for before the next call. */
export type TlsWants = "read" | "write";

/** Why a connection failed. */
export interface TlsFailure {
  /** The failed step: reading the PEM texts, connecting, the handshake, or verifying the certificate. */
  readonly step: "ca" | "connect" | "handshake" | "verify";
  /** Negated errno (ETIMEDOUT at the timeout), or 0 if `text` has the reason. */
  readonly error: number;
  /** The TLS library's message; for `verify`, all problems of the certificate. */
  readonly text: string;
}

/** The end of a program. */
export interface HostRun {
  /** Exit status; null if a signal ended it or it did not start. */
  readonly status: number | null;
  /** The number of the signal that ended it. */
  readonly signal?: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Negated errno if it could not be started, printed more than 4 MiB (EFBIG) or the time was over; else 0. */
  readonly error: number;
}
