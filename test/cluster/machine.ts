import { execFile, spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { paths } from "./paths";

const execute = promisify(execFile);

/** How a command in the machine is run. */
interface RunOptions {
  readonly input?: string;
  readonly directory?: string;
}

/**
 * The node: mount, network and PID namespaces of its own, held by one process that is process 1 inside. Whatever is
 * mounted, addressed or started in it ends with that process, so nothing of it can be left on the host.
 */
export class Machine {
  private constructor(
    /** The holder's process id on the host. */
    readonly pid: number,
    /** That of its parent, which outlives everything inside: it is the last to be in the namespaces. */
    private readonly parent: number,
    private readonly state: string,
  ) {}

  private static readonly pidFile = join(paths.state, "machine.pid");

  /**
   * Makes the namespaces.
   * @param init static executable that waits, and buries orphans, when called with `pause`
   * @param state directory of what is kept about it. @default the cluster's
   */
  static async start(init: string, state: string = paths.state): Promise<Machine> {
    const isolation = [
      "--mount",
      "--net",
      "--pid",
      "--fork",
      "--kill-child",
      "--mount-proc",
      "--propagation",
      "private",
    ];
    const holder = spawn("unshare", [...isolation, init, "pause", state], { detached: true, stdio: "ignore" });
    holder.unref();
    for (let tries = 0; tries < 3000 && holder.exitCode === null; tries++) {
      await sleep(10);
      const children = await readFile(`/proc/${holder.pid}/task/${holder.pid}/children`, "utf8").catch(() => "");
      const pid = Number(children.trim());
      if (pid > 0 && (await holds(pid, state))) {
        await mkdir(state, { recursive: true });
        if (state === paths.state) await writeFile(Machine.pidFile, `${pid} ${holder.pid}`);
        return new Machine(pid, Number(holder.pid), state);
      }
    }
    throw new Error("unshare made no namespaces: the kernel must allow mount, network and PID namespaces");
  }

  /** The cluster's machine, which an earlier command started, if it still runs. */
  static async find(): Promise<Machine | undefined> {
    const text = await readFile(Machine.pidFile, "utf8").catch(() => "");
    const [pid = 0, parent = 0] = text.split(" ").map(Number);
    return pid > 0 && (await holds(pid, paths.state)) ? new Machine(pid, parent, paths.state) : undefined;
  }

  /** Whether it has not ended. */
  async runs(): Promise<boolean> {
    return holds(this.pid, this.state);
  }

  /** The path on the host of a path inside, such as a socket's. */
  outside(path: string): string {
    return join(`/proc/${this.pid}/root`, path);
  }

  /** The command line that runs a command inside. */
  enter(command: readonly string[], directory = "/"): string[] {
    const env = [
      `HOME=${join(this.state, "home")}`,
      `KUBECONFIG=${join(this.state, "kubeconfigs", "admin")}`,
      `PATH=${searchPath(this.state)}`,
    ];
    const namespaces = ["--target", String(this.pid), "--mount", "--net", "--pid"];
    return ["nsenter", ...namespaces, "env", `--chdir=${directory}`, ...env, ...command];
  }

  /** Runs a command inside to its end. @returns its standard output */
  async run(command: readonly string[], options: RunOptions = {}): Promise<string> {
    const [program, ...args] = this.enter(command, options.directory) as [string, ...string[]];
    const running = execute(program, args, { maxBuffer: 1 << 26 });
    // A command may end without reading its input.
    running.child.stdin?.on("error", () => undefined).end(options.input ?? "");
    try {
      return (await running).stdout;
    } catch (error) {
      const { stderr, stdout, code } = error as { stderr?: string; stdout?: string; code?: number };
      throw new Error(`${command.join(" ")} ended with ${code}: ${`${stderr}${stdout}`.trim()}`, { cause: error });
    }
  }

  /** Starts a daemon inside; its process id there is kept in `pids` of the state, its output in `logs`. */
  async daemon(name: string, command: readonly string[]): Promise<void> {
    const script = 'echo $$ > "$0"; exec "$@"';
    const pid = join(this.state, "pids", name);
    const [program, ...args] = this.enter(["sh", "-c", script, pid, ...command]) as [string];
    const log = openSync(join(this.state, "logs", name), "a");
    spawn(program, args, { detached: true, stdio: ["ignore", log, log] }).unref();
    closeSync(log);
  }

  /** Process id of a daemon inside the machine, if it runs. */
  async pidOf(name: string): Promise<number | undefined> {
    const pid = Number(await readFile(join(this.state, "pids", name), "utf8").catch(() => "0"));
    return (await dead(`/proc/${this.pid}/root/proc/${pid}`)) ? undefined : pid;
  }

  /** Ends a daemon and waits until it has ended. */
  async endDaemon(name: string, signal = "TERM"): Promise<void> {
    const pid = await this.pidOf(name);
    if (pid === undefined) return;
    await this.run(["kill", `-${signal}`, String(pid)]);
    for (let tries = 0; tries < 1_200; tries++) {
      if ((await this.pidOf(name)) === undefined) return;
      await sleep(50);
    }
    throw new Error(`${name} did not end within 60 s of SIG${signal}`);
  }

  /** Ends everything inside at once: the kernel kills all of a PID namespace with its first process. */
  async stop(): Promise<void> {
    try {
      process.kill(this.pid, "SIGKILL");
    } catch {
      // It has already ended.
    }
    for (let tries = 0; tries < 500 && !(await dead(`/proc/${this.parent}`)); tries++) await sleep(20);
  }
}

/** Whether a process has ended, by its directory in /proc: it may stay a zombie for a moment. */
async function dead(directory: string): Promise<boolean> {
  const stat = await readFile(join(directory, "stat"), "utf8").catch(() => ") Z");
  return stat.slice(stat.lastIndexOf(")") + 2).startsWith("Z");
}

/** Whether a process is the holder of the machine with this state. */
async function holds(pid: number, state: string): Promise<boolean> {
  const commandLine = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
  return commandLine.split("\0").slice(1, 3).join(" ") === `pause ${state}`;
}

const searchPath = (state: string) =>
  [
    join(state, "bin"),
    paths.binaries,
    join(paths.helm, ".."),
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
  ].join(delimiter);
