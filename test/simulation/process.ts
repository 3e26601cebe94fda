/** An installer's process on the simulated node: its operations can be counted, held up and be its last. */
import type { FSWatcher, Stats } from "node:fs";
import type { Ended } from "../../system/child";
import type { Clock, Random } from "./clock";
import { FileError, type Files, type Inode, sync, textOf } from "./files";
import type { Realm } from "./load";
import { End, failure, type Peer } from "./network";
import type { Failure, Kernel, Socket, Target } from "./seam/kernel";

/** An operation of a process: what it does, with which file. */
export type Operation = string;

/** What the process needs of the node. */
export interface Machine {
  readonly clock: Clock;
  readonly random: Random;
  /** Called before each operation. */
  before(process: Process, operation: Operation): void;
  /** A process has ended by itself. */
  ended(process: Process): void;
  /** Runs an executable. */
  execute(process: Process, inode: Inode | undefined): Ended;
  /** Sockets of the node, by their inode. */
  readonly sockets: Map<number, (of: Peer) => End>;
  connect(of: Process): End | "refused" | "silent";
}

/** The process was killed: none of its operations happens any more. */
class Killed extends Error {}

const basename = (path: string) => path.slice(path.lastIndexOf("/") + 1);

/** Operations that are named by their second path. */
const TO = ["exchange", "rename", "link", "symlink"];
const EXECUTE_MS = 3;
const CONNECT_MS = 1;

interface Options {
  readonly name: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly files: Files;
  readonly realm: Realm;
}

export class Process implements Peer {
  isDead = false;
  isFrozen = false;
  /** Of a process that has ended by itself. */
  status: number | undefined;
  readonly lines: string[] = [];
  readonly open = new Set<{ close(): void }>();
  /** How often each operation has begun. */
  readonly operations = new Map<Operation, number>();
  /** Its server of health checks. */
  private health: ((socket: Socket) => void) | undefined;
  private readonly descriptors = new Map<number, { readonly inode: Inode; offset: number }>();
  private stopping: (() => void) | undefined;
  readonly name: string;
  readonly files: Files;
  private readonly realm: Realm;
  private readonly kernel: Kernel;

  constructor(
    private readonly machine: Machine,
    options: Options,
  ) {
    this.name = options.name;
    this.files = options.files;
    this.realm = options.realm;
    this.kernel = this.kernelOf(options.environment);
    this.turn(this.realm.main);
  }

  turn(callback: () => void): void {
    if (!this.isDead) this.realm.turn(this.kernel, callback);
  }

  kill(): void {
    this.isDead = true;
    for (const each of this.open) each.close();
  }

  terminate(): void {
    this.machine.clock.set(() => this.turn(() => this.stopping?.()), 0, this);
  }

  /** Asks as the kubelet does. @param answered without a status if nothing listens */
  probe(path: string, answered: (status: number | undefined, body: string) => void): void {
    const { health } = this;
    if (health === undefined || this.isDead) {
      answered(undefined, "");
      return;
    }
    let text = "";
    const decoder = new TextDecoder();
    const [near, far] = End.pair(this.machine.clock, this, (bytes, end) => {
      text += bytes === undefined ? "" : decoder.decode(bytes);
      const [head, body] = text.split("\r\n\r\n");
      if (bytes !== undefined && body === undefined) return;
      end.close();
      answered(Number(head?.split(" ")[1]) || undefined, body ?? "");
    });
    this.turn(() => health(near));
    far.write(new TextEncoder().encode(`GET ${path} HTTP/1.1\r\nhost: node\r\nconnection: close\r\n\r\n`));
  }

  private begin(operation: Operation): void {
    if (this.isDead) throw new Killed("killed");
    this.operations.set(operation, (this.operations.get(operation) ?? 0) + 1);
    this.machine.before(this, operation);
    if (this.isDead) throw new Killed("killed");
  }

  private kernelOf(environment: Readonly<Record<string, string>>): Kernel {
    const { machine } = this;
    return {
      args: [],
      environment,
      random: machine.random,
      now: () => machine.clock.now,
      setTimer: (callback, ms) => machine.clock.set(() => this.turn(callback), ms, this),
      file: (name, ...args) => this.file(name, args),
      execute: (program, done) => {
        this.begin(`execute ${basename(program)}`);
        const end = () => done(machine.execute(this, this.files.inodeIfAny(program)));
        machine.clock.set(() => this.turn(end), EXECUTE_MS, this);
      },
      onOpened: (directory, opened) => {
        this.begin(`watch ${basename(directory)}`);
        const { openings } = this.files.inode(directory);
        openings.add(opened);
        return () => openings.delete(opened);
      },
      connect: (target, done) => this.connect(target, done),
      listen: (at, taken) => this.listen(at, taken),
      onStop: (stop) => {
        this.stopping = stop;
      },
      write: (text) => {
        if (!this.isDead) this.lines.push(text);
      },
      exit: (code) => {
        if (this.isDead) return;
        this.status = code;
        this.kill();
        machine.ended(this);
      },
    };
  }

  private connect({ path, deadlineMs }: Target, done: (answer: Socket | Failure) => void): { abort(): void } {
    const { clock, sockets } = this.machine;
    const end = (made: Socket | Failure) => {
      timeout.isCleared = true;
      attempt.isCleared = true;
      done(made);
    };
    const answer = () => {
      const inode = path === undefined ? undefined : this.files.inodeIfAny(path);
      if (path !== undefined && inode === undefined) {
        end(failure("no such socket", "ENOENT"));
        return;
      }
      const made =
        path === undefined ? this.machine.connect(this) : (sockets.get(inode?.ino ?? 0)?.(this) ?? "refused");
      if (made === "refused") end(failure("connection refused", "ECONNREFUSED"));
      else if (made !== "silent") end(made);
    };
    const late = () => end(failure(`no connection within ${deadlineMs} ms`, "ETIMEDOUT"));
    const timeout = clock.set(() => this.turn(late), deadlineMs, this);
    const attempt = clock.set(() => this.turn(answer), CONNECT_MS, this);
    return { abort: () => end(failure("the connection is no longer wanted", "")) };
  }

  private listen(at: string | number, taken: (socket: Socket) => void) {
    if (typeof at === "number") {
      this.health = taken;
      return { port: at, close: () => undefined };
    }
    this.begin(`bind ${basename(at)}`);
    const { clock, sockets } = this.machine;
    const { ino } = this.files.add(at, this.files.disk.inode("socket", 0o600));
    const accept = (of: Peer) => {
      const [near, far] = End.pair(clock, of, this);
      clock.set(() => this.turn(() => taken(far)), 0, this);
      return near;
    };
    sockets.set(ino, accept);
    const close = () => void sockets.delete(ino);
    this.open.add({ close });
    return { port: 0, close };
  }

  /** An operation of `node:fs`. @throws FileError */
  private file(name: string, args: readonly unknown[]): unknown {
    const [path, second, third] = args as [string, unknown, unknown];
    if (name === "close") return this.descriptors.delete(args[0] as number);
    const { inode } = typeof args[0] === "number" ? this.descriptor(args[0]) : { inode: undefined };
    const at = inode === undefined ? (TO.includes(name) ? (second as string) : path) : (inode.place?.name ?? "");
    this.begin(`${name} ${basename(at)}`);
    if (inode !== undefined) return this.ofDescriptor(name, args, inode);
    const { files } = this;
    switch (name) {
      case "stat":
        return this.stat(path, second === true, third === true);
      case "read": {
        const bytes = this.opened(path).bytes;
        return second === undefined ? bytes : textOf(bytes);
      }
      case "list":
        for (const told of files.inode(path).openings) told();
        return second === undefined
          ? files.names(path)
          : files.list(path).map(([entry, { kind }]) => new Entry(entry, kind));
      case "readlink":
        return linkOf(files.inode(path, false), path);
      case "realpath":
        return files.realpath(path);
      case "exists":
        return files.has(path);
      case "access":
        if (files.inode(path) !== undefined && files.disk.isReadOnly && (second as number) & 2)
          throw new FileError("EROFS", path);
        return undefined;
      case "statfs":
        return { bavail: files.disk.isFull ? 0 : 1e6, bsize: 4096 };
      case "open":
        return this.openFile(path, second === "wx");
      case "link":
        return files.addName(path, second as string);
      case "symlink":
        return files.addLink(path, second as string);
      case "rename":
        return files.rename(path, second as string);
      case "exchange":
        return files.exchange(path, second as string);
      case "unlink":
        return files.remove(path);
      case "mkdir":
        return files.makeDirectory(path, second as number);
      case "rmdir":
        return files.removeDirectory(path);
      case "chown":
        return Object.assign(files.inode(path), { uid: second, gid: third });
      case "watch":
        return this.watch(path, second as () => void);
      default:
        throw new Error(`node:fs ${name} is not simulated`);
    }
  }

  private ofDescriptor(name: string, args: readonly unknown[], inode: Inode): unknown {
    const open = this.descriptor(args[0] as number);
    switch (name) {
      case "pread": {
        const [, into, offset, length, position] = args as [number, Uint8Array, number, number, number | null];
        const from = position ?? open.offset;
        const part = inode.bytes.subarray(from, from + length);
        into.set(part, offset);
        if (position === null) open.offset += part.length;
        return part.length;
      }
      case "write": {
        const added = args[1] as Uint8Array;
        const whole = new Uint8Array(inode.bytes.length + added.length);
        whole.set(inode.bytes);
        whole.set(added, inode.bytes.length);
        this.files.put(inode, whole);
        return added.length;
      }
      case "fchmod":
        inode.mode = args[1] as number;
        inode.ctimeMs = this.machine.clock.now;
        return undefined;
      case "fsync":
        return sync(inode);
      default:
        throw new Error(`node:fs ${name} of a descriptor is not simulated`);
    }
  }

  private descriptor(number: number) {
    const open = this.descriptors.get(number);
    if (open === undefined) throw new FileError("EBADF", String(number));
    return open;
  }

  private opened(path: string): Inode {
    const inode = this.files.inode(path);
    if (inode.kind === "directory") throw new FileError("EISDIR", path);
    return inode;
  }

  private openFile(path: string, isNew: boolean): number {
    const inode = isNew ? this.files.create(path, 0o600) : this.files.inode(path);
    const number = 3 + this.descriptors.size + Math.max(0, ...this.descriptors.keys());
    this.descriptors.set(number, { inode, offset: 0 });
    return number;
  }

  private stat(path: string, follow: boolean, isNeeded: boolean): Stats | undefined {
    const inode = isNeeded ? this.files.inode(path, follow) : this.files.inodeIfAny(path, follow);
    if (inode === undefined) return undefined;
    return new Status(inode) as unknown as Stats;
  }

  private watch(path: string, changed: () => void): FSWatcher {
    const inode = this.files.inode(path);
    const told = () => void this.machine.clock.set(() => this.turn(changed), 0.1, this);
    inode.watches.add(told);
    const close = () => void inode.watches.delete(told);
    this.open.add({ close });
    return { close, on: () => undefined } as unknown as FSWatcher;
  }
}

/** As Node's Dirent. */
class Entry {
  constructor(
    readonly name: string,
    private readonly kind: Inode["kind"],
  ) {}

  isFile(): boolean {
    return this.kind === "file";
  }

  isDirectory(): boolean {
    return this.kind === "directory";
  }

  isSymbolicLink(): boolean {
    return this.kind === "link";
  }
}

/** As Node's Stats. */
class Status extends Entry {
  readonly dev = 1;
  readonly ino: number;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly size: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;

  constructor({ kind, ino, mode, uid, gid, bytes, mtimeMs, ctimeMs }: Inode) {
    super("", kind);
    this.ino = ino;
    this.mode = mode;
    this.uid = uid;
    this.gid = gid;
    this.size = bytes.length;
    this.mtimeMs = mtimeMs;
    this.ctimeMs = ctimeMs;
  }
}

function linkOf({ kind, target }: Inode, path: string): string {
  if (kind !== "link") throw new FileError("EINVAL", path);
  return target;
}
