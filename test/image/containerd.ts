import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { until } from "../support/until";

const run = promisify(execFile);

/** A containerd of our own: state, root and socket below one directory, nothing shared with the machine's. */
export class Containerd {
  private readonly socket: string;
  private daemon: ChildProcess | undefined;
  private log = "";

  constructor(private readonly directory: string) {
    this.socket = join(directory, "containerd.sock");
  }

  async start(): Promise<void> {
    await mkdir(this.directory, { recursive: true });
    const config = join(this.directory, "config.toml");
    const paths = { root: join(this.directory, "root"), state: join(this.directory, "state") };
    await writeFile(
      config,
      `version = 2\nroot = "${paths.root}"\nstate = "${paths.state}"\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n[grpc]\naddress = "${this.socket}"\n`,
    );
    this.daemon = spawn("containerd", ["--config", config], { stdio: ["ignore", "ignore", "pipe"] });
    this.daemon.stderr?.on("data", (chunk: Buffer) => {
      this.log += chunk.toString();
    });
    await until("containerd", async () => (await this.ctr("version")) !== "").catch((error: Error) => {
      throw new Error(`containerd does not answer:\n${this.log}`, { cause: error });
    });
  }

  /** Runs ctr against this daemon. @returns its standard output */
  async ctr(...args: string[]): Promise<string> {
    const { stdout } = await run("ctr", ["--address", this.socket, ...args], { maxBuffer: 1 << 24 });
    return stdout;
  }

  /** Starts a container in the foreground of the process returned. */
  runContainer(...args: string[]): ChildProcess {
    return spawn("ctr", ["--address", this.socket, "run", ...args], { stdio: ["ignore", "pipe", "pipe"] });
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.daemon?.once("exit", resolve));
    this.daemon?.kill("SIGTERM");
    await ended;
  }
}
