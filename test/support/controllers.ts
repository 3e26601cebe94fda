/** The repair controller within a test, against an API server over TLS, with a clock that runs faster. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runRepairController } from "../../controllers/repair/run";
import { readSettings } from "../../controllers/repair/settings";
import type { ApiServer } from "../../kubernetes/api-server";
import { type Clock, systemClock } from "../../process/clock";
import { createLog } from "../../process/log";
import { get } from "./http";
import { NODE } from "./meshed-pod";
import { metricIn } from "./metrics";
import { freePort } from "./ports";
import { type ProgramOptions, startProgram } from "./program";
import { until } from "./until";

const EPOCH = Date.now();

/** A clock that runs so many times faster; two of the same speed agree on the time of day. */
export function fastClock(speed: number): Clock {
  return {
    ...systemClock,
    date: () => new Date(EPOCH + (Date.now() - EPOCH) * speed),
    now: () => systemClock.now() * speed,
    sleep: (ms, signal) => systemClock.sleep(ms / speed, signal),
  };
}

/** Answers as the installer's readiness check. */
class InstallerStub {
  ready = true;
  asked = 0;
  private readonly server: Server;

  constructor() {
    this.server = createServer((_, response) => {
      this.asked += 1;
      response.writeHead(this.ready ? 200 : 503).end();
    });
  }

  async open(): Promise<void> {
    await new Promise<void>((resolve) => this.server.listen(0, "127.0.0.1", resolve));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/ready`;
  }

  close(): void {
    this.server.close();
  }
}

interface Options {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** How many times faster than time it runs. @default 1 */
  readonly speed?: number;
  /** A process of the built executable, as the image runs it, at the speed of time. @default false: within the test */
  readonly isBuilt?: boolean;
}

/** An API server that controllers are to use. */
interface Api {
  readonly server: ApiServer;
}

/** What the controller's container is given for an API server; the directory is a service account's. */
function environmentFor(api: Api, directory: string): Record<string, string> {
  writeFileSync(join(directory, "token"), `${api.server.token}\n`);
  writeFileSync(join(directory, "ca.crt"), api.server.ca ?? "");
  return {
    KUBERNETES_SERVICE_HOST: api.server.host,
    KUBERNETES_SERVICE_PORT: String(api.server.port),
    SERVICE_ACCOUNT_DIR: directory,
    LINKERD_CNI_REPAIR_CONTROLLER_NODE_NAME: NODE,
    LINKERD_CNI_REPAIR_CONTROLLER_POD_NAME: "linkerd-cni-x7k2p",
  };
}

/** Runs the built executable until the signal is given. @throws if it ends otherwise than a program that is asked to */
function runBuilt(options: ProgramOptions, log: string[], signal: AbortSignal): Promise<void> {
  const child = startProgram("repair", options);
  for (const output of [child.stdout, child.stderr]) {
    output?.setEncoding("utf8").on("data", (text: string) => void log.push(text));
  }
  signal.addEventListener("abort", () => child.kill("SIGTERM"), { once: true });
  return new Promise((resolve, reject) => {
    child.once("error", reject).once("close", (code, killed) => {
      if (code === 0 && signal.aborted) resolve();
      else reject(new Error(`the repair controller ended with ${killed ?? `status ${code}`}:\n${log.join("")}`));
    });
  });
}

/** A controller that runs. */
export class RunningController {
  readonly log: string[] = [];
  readonly installer = new InstallerStub();
  readonly clock: Clock;
  private readonly stopping = new AbortController();
  private readonly directory = mkdtempSync(join(tmpdir(), "repair-"));
  private done: Promise<void> = Promise.resolve();

  private constructor(
    private readonly port: number,
    { speed = 1 }: Options,
  ) {
    this.clock = fastClock(speed);
  }

  static async start(api: Api, options: Options = {}, before?: (made: RunningController) => void) {
    const made = new RunningController(await freePort(), options);
    await made.installer.open();
    before?.(made);
    const args = [`--admin-addr=127.0.0.1:${made.port}`, `--installer-ready=${made.installer.url}`];
    const env = { ...environmentFor(api, made.directory), ...options.env };
    args.push(...(options.args ?? []));
    const { signal } = made.stopping;
    if (options.isBuilt) {
      made.done = runBuilt({ args: ["--log-level=debug", ...args], env }, made.log, signal);
      await Promise.race([made.done, until("its port", async () => (await made.ask("/live")).status > 0)]);
    } else {
      const log = createLog("debug", "plain", (line) => made.log.push(line));
      made.done = runRepairController({ settings: readSettings(args, env), log, clock: made.clock, signal });
    }
    return made;
  }

  /** Status and text that the admin port answers. */
  ask(path: string): ReturnType<typeof get> {
    return get(this.port, path);
  }

  /** The value of a metric without labels. */
  async metric(name: string): Promise<number> {
    return metricIn((await this.ask("/metrics")).text, `linkerd_cni_repair_controller_${name}`);
  }

  async ready(): Promise<void> {
    await until("the first list", async () => (await this.ask("/ready")).status === 200);
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.done;
    this.installer.close();
    rmSync(this.directory, { recursive: true });
  }
}
