/** Calls of the plugin's sanitized executable, each in a separate process without the cost of a start. */
import { type ChildProcess, spawn } from "node:child_process";
import type { Duplex } from "node:stream";
import { NodePath } from "../../cni/contract";

/** Input of one process. */
export interface Call {
  /** Values as bytes: not every environment is UTF-8. */
  readonly env: Readonly<Record<string, Buffer>>;
  readonly stdin: Buffer;
}

export interface Answer {
  /** Exit status; null if a signal ended it. */
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const HEADER = 12;

/** Reports of the sanitizer have their own exit status; memory that is not freed at the end is not a leak. */
const SANITIZERS = {
  ASAN_OPTIONS:
    "exitcode=99:detect_leaks=0:malloc_context_size=4:quarantine_size_mb=8:thread_local_quarantine_size_kb=64",
  UBSAN_OPTIONS: "exitcode=99:halt_on_error=1:print_stacktrace=1",
};

/** No iptables, no record of calls: nothing of this machine that the fake one has not, and its installer's socket. */
const ALONE = [
  "mount -t tmpfs none /usr/sbin",
  "mount -t tmpfs none /run",
  `mkdir ${NodePath.runDir}`,
  `mount --bind $2 ${NodePath.runDir}`,
  "exec env LD_PRELOAD=$1 $0",
].join(" && ");

export class ForkServer {
  private readonly child: ChildProcess;
  private received = Buffer.alloc(0);
  private waiting: { resolve(answer: Answer): void; reject(error: Error): void } | undefined;

  /**
   * @param library the built fork-server.c
   * @param runDir has the installer's socket, and is in the default place, too
   */
  constructor(executable: string, library: string, runDir: string) {
    this.child = spawn("unshare", ["-m", "sh", "-c", ALONE, executable, library, runDir], {
      env: { PATH: process.env["PATH"], ...SANITIZERS },
      stdio: ["ignore", "inherit", "inherit", "pipe", "pipe"],
    });
    const answers = this.child.stdio[4] as Duplex;
    answers.on("data", (bytes: Buffer) => this.receive(bytes));
    this.child.on("exit", (status) => this.waiting?.reject(new Error(`the fork server ended with status ${status}`)));
  }

  /** @param executable a real start of that one, in place of a fork */
  call({ env, stdin }: Call, executable = ""): Promise<Answer> {
    const variables = Object.entries({ ...env, ...(executable === "" ? {} : bytesOf(SANITIZERS)) });
    const block = Buffer.concat(variables.flatMap(([name, value]) => [Buffer.from(`${name}=`), value, Buffer.of(0)]));
    const path = Buffer.from(executable);
    const header = Buffer.alloc(HEADER);
    for (const [at, { length }] of [path, block, stdin].entries()) header.writeUInt32LE(length, 4 * at);
    return new Promise((resolve, reject) => {
      this.waiting = { resolve, reject };
      (this.child.stdio[3] as Duplex).write(Buffer.concat([header, path, block, stdin]));
    });
  }

  close(): void {
    this.child.removeAllListeners("exit");
    (this.child.stdio[3] as Duplex).destroy();
  }

  private receive(bytes: Buffer): void {
    this.received = Buffer.concat([this.received, bytes]);
    if (this.received.length < HEADER) return;
    const [status = 0, out = 0, err = 0] = [0, 4, 8].map((at) => this.received.readUInt32LE(at));
    const end = HEADER + out + err;
    if (this.received.length < end) return;
    const stdout = this.received.toString("utf8", HEADER, HEADER + out);
    const stderr = this.received.toString("utf8", HEADER + out, end);
    this.received = this.received.subarray(end);
    const exited = (status & 0x7f) === 0;
    this.waiting?.resolve({ status: exited ? (status >> 8) & 0xff : null, stdout, stderr });
  }
}

const bytesOf = (texts: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, Buffer.from(text)]));
