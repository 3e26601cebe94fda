import type { ChildProcess } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { root } from "../../build/paths";
import { type Node, type Ran, withRunDir } from "../support/netns";

/** One start of a program, which takes no arguments. */
export interface Start {
  readonly program: string;
  readonly env: Readonly<Record<string, string>>;
  /** What it reads from standard input. */
  readonly input: string;
}

interface Timed extends Ran {
  /** Milliseconds from the start of the process to its end. */
  readonly tookMs: number;
}

/** A small process that starts programs and measures them: starter.py says why. */
export class Starter {
  private readonly child: ChildProcess;
  private readonly answers: AsyncIterator<string>;

  /** @param runDir what is mounted at /run/linkerd-cni for the programs; absent: nothing is there */
  constructor(node: Node, runDir?: string) {
    const command = ["python3", join(root, "test", "bench", "starter.py")];
    const [program = "", ...args] = [...(runDir === undefined ? [] : withRunDir(runDir)), ...command];
    this.child = node.start(program, args, { env: environment });
    if (this.child.stdout === null) throw new Error("no standard output");
    this.child.stderr?.on("data", (text: Buffer) => process.stderr.write(text));
    this.answers = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]();
  }

  /** Starts programs at once and waits for all of them. */
  async run(starts: readonly Start[]): Promise<readonly Timed[]> {
    this.child.stdin?.write(`${JSON.stringify(starts)}\n`);
    const { value, done } = await this.answers.next();
    if (done === true) throw new Error("the process that starts programs ended");
    return JSON.parse(value) as Timed[];
  }

  /** Starts one. */
  async one(start: Start): Promise<Timed> {
    const [timed] = await this.run([start]);
    return timed as Timed;
  }

  close(): void {
    this.child.stdin?.end();
  }
}

const environment = { PATH: process.env["PATH"] ?? "" };
