/** The webhook's server in a process, and clients of it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { type Agent, request } from "node:https";
import { connect as connectPlain, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { connect, type TLSSocket } from "node:tls";
import { buildExecutable } from "../../build/engine";
import { PRODUCT } from "../../build/programs";
import type { ServerLimits } from "../../controllers/multus/webhook/server";
import { authority } from "../../system/certificates.testing";
import type { TlsPair } from "../../system/net";
import type { Order } from "./webhook-main";

const MAIN = join(__dirname, "webhook-main.ts");

/** A certificate for 127.0.0.1, known by its common name. */
export const certificateFor = (name: string): TlsPair => authority(name, { names: ["127.0.0.1"] });

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: string;
}

interface Sent {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | readonly string[];
  /** @default a connection of its own */
  readonly agent?: Agent;
}

/** A server that runs in a separate process. */
export class WebhookProcess {
  port = 0;
  log = "";
  private readonly answers: AsyncIterator<string>;

  private constructor(
    private readonly child: ChildProcess,
    private readonly directory: string,
    private readonly orders: Socket,
    readonly ca: readonly string[],
  ) {
    this.answers = createInterface({ input: orders })[Symbol.asyncIterator]();
    orders.on("error", () => undefined);
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("data", (chunk: Buffer) => {
        this.log += chunk;
      });
    }
  }

  /** Clients trust all of the certificates; the first is shown. */
  static async start(certificates: readonly TlsPair[], limits: Partial<ServerLimits> = {}): Promise<WebhookProcess> {
    const directory = mkdtempSync(join(tmpdir(), "webhook-"));
    const executable = join(directory, "webhook");
    await buildExecutable(executable, { ...PRODUCT, programs: { webhook: MAIN } });
    const child = spawn(executable, ["webhook"], { stdio: ["ignore", "pipe", "pipe"] });
    const [port] = (await once(child.stdout, "data")) as [Buffer];
    const orders = connectPlain(Number(port.toString()), "127.0.0.1");
    const made = new WebhookProcess(
      child,
      directory,
      orders,
      certificates.map(({ cert }) => cert),
    );
    made.port = (await made.tell({ do: "start", pair: certificates[0] as TlsPair, limits })) as number;
    return made;
  }

  /** Sends a command to the process. @returns its answer */
  async tell(order: Order): Promise<unknown> {
    this.orders.write(`${JSON.stringify(order)}\n`);
    return this.told();
  }

  /** The next line that the process writes. */
  async told(): Promise<unknown> {
    const { value, done } = await this.answers.next();
    if (done === true) throw new Error(`the webhook's process ended: ${this.log}`);
    return JSON.parse(value);
  }

  send({ method = "POST", path = "/annotate-multus-v1-pod?timeout=10s", headers = {}, body = [], agent }: Sent) {
    return new Promise<Answer>((resolve, reject) => {
      const outgoing = request(
        {
          ...{ host: "127.0.0.1", port: this.port, method, path, agent: agent ?? false, ca: [...this.ca] },
          headers: { "content-type": "application/json", ...headers },
        },
        (response) => {
          let text = "";
          response.on("data", (chunk: Buffer) => {
            text += chunk;
          });
          response.on("error", reject);
          response.on("end", () =>
            resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }),
          );
        },
      );
      outgoing.on("error", reject);
      for (const part of typeof body === "string" ? [] : body) outgoing.write(part);
      outgoing.end(typeof body === "string" ? body : undefined);
    });
  }

  /** A connection on which nothing has been said yet. */
  async connect(): Promise<TLSSocket> {
    const socket = connect({ host: "127.0.0.1", port: this.port, ca: [...this.ca] });
    await once(socket, "secureConnect");
    return socket;
  }

  async stop(): Promise<void> {
    this.orders.destroy();
    if (this.child.exitCode === null) {
      this.child.kill("SIGKILL");
      await once(this.child, "exit");
    }
    rmSync(this.directory, { recursive: true });
  }
}
