/**
 * The interface of a program to its machine: system calls, TLS, keys, programs. The executable's C part
 * (host/*.c) provides it as the global `host`; tests provide a fake.
 *
 * A call that fails returns a negated errno. Texts cross as UTF-8: what is not well-formed becomes U+FFFD.
 */
export interface Host {
  /** The value of an environment variable; undefined if it is not set. */
  env(name: string): string | undefined;
  /** Milliseconds since the process started, with fractions, by a clock that only goes forward. */
  elapsed(): number;
  encode(text: string): Uint8Array;
  decode(bytes: Uint8Array): string;
  /** Bytes of a text in either alphabet of base64, padded or not; -EINVAL if it is none. */
  base64(text: string): Uint8Array | number;

  /** Descriptor, or negated errno. `mode` is for a file that is created. */
  open(path: string, flags: number, mode: number): number;
  /** Bytes that were read, 0 at the end. */
  read(descriptor: number, into: Uint8Array): number;
  /** Bytes that were written. */
  write(descriptor: number, bytes: Uint8Array): number;
  /** The new offset. */
  seek(descriptor: number, offset: number, whence: number): number;
  close(descriptor: number): number;
  /** flock(2). */
  flock(descriptor: number, operation: number): number;
  rename(from: string, to: string): number;
  /** unlinkat(2): a file, or with AT_REMOVEDIR an empty directory. */
  unlink(path: string, flags: number): number;
  /** access(2) with F_OK: 0 if the path leads to something. */
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
  /** poll(2) of one descriptor; of none (-1) it sleeps. The events that happened, 0 when the time is over. */
  poll(descriptor: number, events: number, milliseconds: number): number;
  /** poll(2) of an array of `struct pollfd` that is aligned as they are; `revents` are filled in. How many have any. */
  pollAll(descriptors: Uint8Array, milliseconds: number): number;

  /** Addresses of a host name, as texts, IPv4 first; -ENOENT: it has none, -EAGAIN: its name servers do not say. */
  resolve(name: string, milliseconds: number): readonly string[] | number;
  /**
   * Connects to a server and completes a verified TLS handshake; at most one connection is open at a time.
   * Undefined if it succeeded.
   */
  tlsConnect(server: TlsServer, milliseconds: number): TlsFailure | undefined;
  /** Bytes that were sent, at least one. */
  tlsSend(bytes: Uint8Array, milliseconds: number): number;
  /** Bytes that were received; 0 if the server closed the connection. */
  tlsReceive(into: Uint8Array, milliseconds: number): number;
  tlsClose(): void;

  /** Runs a program (an absolute path) with that environment and nothing else; ended by SIGKILL when the time is over. */
  run(program: string, args: readonly string[], input: string, env: readonly string[], milliseconds: number): HostRun;
  /** The exports of a script that is embedded beside the main one: its modules are loaded on demand. */
  load<Name extends keyof Scripts>(name: Name): Scripts[Name];
  /** Ends the process at once. */
  exit(status: number): never;
}

/**
 * Calls for programs other than the plugin, which starts without them. The calls without a comment are
 * those of the kernel.
 */
export interface LastingHost extends Host, TlsHost {
  /** The arguments after the program's name. */
  args(): readonly string[];
  /** Each environment variable, as `NAME=value`. */
  environment(): readonly string[];
  /** Ends the program with a message once the engine's memory takes more bytes. @default 256 MiB */
  limitMemory(bytes: number): void;
  /** Whether bytes are the same. */
  isEqual(left: Uint8Array, right: Uint8Array): boolean;
  /** Runs what promises have made ready. @throws what a promise was rejected with that nothing handles */
  runJobs(): void;
  /** fork(2): 0 in the child. */
  fork(): number;

  pread(descriptor: number, into: Uint8Array, offset: number): number;
  getdents(descriptor: number, into: Uint8Array): number;
  fsync(descriptor: number): number;
  fchmod(descriptor: number, mode: number): number;
  closeRange(first: number, last: number): number;
  /** pipe2(2): `into` takes two numbers of 32 bits, the end to read and the one to write. */
  pipe(into: Uint8Array, flags: number): number;
  /** access(2) */
  accessAs(path: string, mode: number): number;
  /** statfs(2): fills `into` (256 bytes, of which the kernel's `struct statfs` has 120). */
  statfs(path: string, into: Uint8Array): number;
  mkdir(path: string, mode: number): number;
  symlink(target: string, path: string): number;
  link(existing: string, path: string): number;
  /** How many bytes of the link's target are in `into`. */
  readlink(path: string, into: Uint8Array): number;
  chown(path: string, uid: number, gid: number): number;
  chdir(path: string): number;
  inotifyInit(flags: number): number;
  inotifyAdd(descriptor: number, path: string, mask: number): number;
  inotifyRemove(descriptor: number, watch: number): number;
  getsockopt(socket: number, level: number, option: number, into: Uint8Array): number;
  /** Fills `into` with a `struct sockaddr`. */
  getsockname(socket: number, into: Uint8Array): number;
  shutdown(socket: number, how: number): number;
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
  yaml: typeof import("./scripts/yaml");
  certificates: typeof import("./scripts/certificates");
}

/** TLS connections of an event loop, and keys. */
export interface TlsHost {
  /**
   * A TLS client on a connected socket that does not block, which the connection takes over; a failure leaves the
   * socket to the caller. `addresses`, `port` and `judge` of the server do not matter here. The connection ends when
   * nothing holds it any more.
   */
  tlsClient(socket: number, server: Omit<TlsServer, "addresses" | "port" | "judge">): TlsConnection | TlsFailure;
  /** A certificate (PEM: the server's first, then those that lead to its authority) with its key; or why it cannot be shown. */
  tlsServer(certificate: string, key: string): TlsIdentity | string;
  /** A TLS server on a connection that was accepted and does not block, which it takes over. It needs the identity from now on. */
  tlsAccept(socket: number, identity: TlsIdentity): TlsConnection;
  /**
   * Goes on with a handshake: undefined once it is complete, what the socket has to be ready for first, or why it failed.
   * @param judge see {@link TlsServer.judge}; a server's connection needs none
   */
  tlsHandshake(connection: TlsConnection, judge?: TlsServer["judge"]): undefined | TlsWants | TlsFailure;
  /** Bytes that were sent, at least one; if it waits, the next call has to be for the same bytes. */
  tlsWrite(connection: TlsConnection, bytes: Uint8Array): number | TlsWants;
  /** Bytes that were received; 0 if the other end ended the connection. Read until it waits before polling the socket. */
  tlsRead(connection: TlsConnection, into: Uint8Array): number | TlsWants;
  /** Ends a connection, and says so to the other end as far as the socket takes it at once. */
  tlsEnd(connection: TlsConnection): void;

  /** SHA-2 of that many bits: 256, 384 or 512. */
  hash(bytes: Uint8Array, bits: number): Uint8Array;
  /** A new key of P-256: 32 bytes of its number, and 65 of its point (0x04, x, y). */
  keyGenerate(): Uint8Array;
  /** SubjectPublicKeyInfo (DER) of a private key (PEM). @throws TypeError in the TLS library's words */
  keyPublic(key: string): Uint8Array;
  /** Signs the SHA-2 of some bytes: ECDSA (DER) or RSA (PKCS#1 v1.5). */
  keySign(key: string, bytes: Uint8Array, bits: number): Uint8Array;
  /** Whether the signature is one of the bytes; false if the public key cannot be read. */
  keyVerify(publicKey: Uint8Array, bytes: Uint8Array, signature: Uint8Array, bits: number): boolean;
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
/** The event that a socket waits for before a call can go on. */
export type TlsWants = "read" | "write";

/** Where to connect, and what to trust there. */
export interface TlsServer {
  /** IPv4 and IPv6 addresses, a line each: the first that takes the connection is used. At most eight are tried. */
  readonly addresses: string;
  readonly port: number;
  /** The host name or address that the certificate must be for. */
  readonly name: string;
  /** PEM certificates that the server's must chain to; empty: none is trusted. */
  readonly ca: string;
  /** PEM of the client's certificate and key; empty: none. */
  readonly certificate: string;
  readonly key: string;
  /** Do not verify the server's certificate. */
  readonly insecure: boolean;
  /**
   * Says what is wrong with a chain that the TLS library trusts, empty if nothing is: asked when the chain has
   * extensions that the library does not check. DER, the server's certificate first.
   */
  judge(chain: readonly Uint8Array[]): string;
}

/** Why there is no connection. */
export interface TlsFailure {
  /** Which step failed: reading the PEM texts, connecting, the handshake, or verifying the certificate. */
  readonly step: "ca" | "certificate" | "connect" | "handshake" | "verify";
  /** Negated errno (ETIMEDOUT when the time is over), or 0 if `text` says why. */
  readonly error: number;
  /** In the TLS library's words; for `verify`, everything that is wrong with the certificate. */
  readonly text: string;
}

/** How a program ended. */
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
