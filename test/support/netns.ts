/** Pod sandboxes for tests: separate network namespaces, as root or, in a user namespace, as any user. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { which } from "./requirements";
import { until } from "./until";

const isRoot = process.getuid?.() === 0;
const HOLD = ["sleep", "3600"];

function works(command: string, ...args: string[]): boolean {
  return spawnSync(command, args, { stdio: "ignore" }).status === 0;
}

/** What tests with namespaces need and this machine lacks, or nothing. */
export function namespacesMissing(): string | undefined {
  if (works("unshare", ...(isRoot ? ["-n"] : ["-rn"]), "true")) return undefined;
  return "root or user namespaces";
}

/** Whether a program is there and runs. */
export function hasProgram(name: string, ...args: string[]): boolean {
  return works(name, ...(args.length === 0 ? ["--version"] : args));
}

export interface Ran {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface RunOptions {
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** Command that runs a program on a node whose /run/linkerd-cni is this directory, or else empty. */
export function withRunDir(directory?: string): readonly string[] {
  const bind = directory === undefined ? "" : `mount --bind "${directory}" /run/linkerd-cni && `;
  const script = `mount -t tmpfs none /run && mkdir /run/linkerd-cni && ${bind}exec "$0" "$@"`;
  return ["unshare", "--mount", "sh", "-c", script];
}

/**
 * Place for pods' namespaces: a mount namespace with an empty /run, so that the plugin does not find the machine's
 * /run/linkerd-cni; it is in a user namespace unless root runs the test.
 */
export class Node {
  private readonly holders: ChildProcess[] = [];
  private prefix: readonly string[] = [];

  static async open(): Promise<Node> {
    const node = new Node();
    const script = `mount -t tmpfs none /run && exec ${HOLD.join(" ")}`;
    const pid = await node.hold(["unshare", "--mount", ...(isRoot ? [] : ["-r"]), "sh", "-c", script]);
    // The full path: a program's PATH may lack it.
    const enter = which("nsenter") ?? "nsenter";
    node.prefix = [enter, "-t", `${pid}`, "--mount", ...(isRoot ? [] : ["-U", "--preserve-credentials"])];
    return node;
  }

  /** A new network namespace; gives its path. */
  async pod(): Promise<string> {
    const pid = await this.hold([...this.prefix, "unshare", "-n", ...HOLD]);
    const path = `/proc/${pid}/ns/net`;
    this.within(path, "ip", ["link", "set", "lo", "up"]);
    return path;
  }

  /** Starts a program as {@link run} does; the caller writes its input. */
  start(command: string, args: readonly string[], { env = {}, cwd = "/" }: RunOptions = {}) {
    const [program = command, ...rest] = [...this.prefix, `--wd=${cwd}`, command, ...args];
    return spawn(program, rest, { env });
  }

  /** Runs a program on the node; its environment holds only the given variables. */
  run(command: string, args: readonly string[], options: RunOptions = {}): Promise<Ran> {
    const child = this.start(command, args, options);
    const output = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const) {
      child[name].setEncoding("utf8").on("data", (text: string) => {
        output[name] += text;
      });
    }
    child.stdin.on("error", () => undefined).end(options.input);
    return new Promise((resolve, reject) => {
      child.on("error", reject);
      child.on("close", (status) => resolve({ status, ...output }));
    });
  }

  /** Runs a program inside a pod's namespace. @throws if it fails */
  within(path: string, command: string, args: readonly string[], input = ""): string {
    const [program = "nsenter", ...rest] = [...this.prefix, "nsenter", `--net=${path}`, command, ...args];
    return execFileSync(program, rest, { encoding: "utf8", input });
  }

  /** Lets a pod's namespace go. */
  release(path: string): void {
    const pid = Number(path.split("/")[2]);
    this.holders.find((holder) => holder.pid === pid)?.kill("SIGKILL");
  }

  close(): void {
    for (const holder of this.holders) holder.kill("SIGKILL");
  }

  /** Starts a process that holds a namespace, and waits until the process is in it. */
  private async hold([command = "", ...args]: readonly string[]): Promise<number> {
    const holder = spawn(command, args, { stdio: "ignore" });
    this.holders.push(holder);
    const { pid = 0 } = holder;
    const isThere = () => readFileSync(`/proc/${pid}/comm`, "utf8").trim() === HOLD[0];
    await until(`the namespace that ${command} ${args.join(" ")} makes`, isThere);
    return pid;
  }
}
