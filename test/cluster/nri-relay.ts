import { mkdir, rm } from "node:fs/promises";
import { connect, createServer, type Server, type Socket } from "node:net";
import { dirname } from "node:path";

/** Bytes of one read, and their sender. */
interface RelayedBytes {
  readonly from: "runtime" | "plugin";
  readonly bytes: Buffer;
}

/** Relays between an NRI plugin and the container runtime, and records what either sends, in order. */
export class NriRelay {
  readonly relayed: RelayedBytes[] = [];
  private readonly server: Server;
  private readonly sockets: Socket[] = [];

  private constructor(runtime: string) {
    this.server = createServer((plugin) => this.join(plugin, connect(runtime)));
  }

  /**
   * @param listen socket for the plugin; its directory is made
   * @param runtime socket of the runtime
   */
  static async start(listen: string, runtime: string): Promise<NriRelay> {
    const relay = new NriRelay(runtime);
    await mkdir(dirname(listen), { recursive: true });
    await rm(listen, { force: true });
    await new Promise<void>((resolve, reject) => relay.server.once("error", reject).listen(listen, resolve));
    return relay;
  }

  /** Number of bytes that the runtime has sent so far. */
  get received(): number {
    return this.relayed.reduce((sum, { from, bytes }) => (from === "runtime" ? sum + bytes.length : sum), 0);
  }

  stop(): void {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
  }

  private join(plugin: Socket, runtime: Socket): void {
    this.sockets.push(plugin, runtime);
    const pass = (from: RelayedBytes["from"], source: Socket, target: Socket) => {
      source.on("data", (bytes: Buffer) => {
        this.relayed.push({ from, bytes });
        target.write(bytes);
      });
      source.on("close", () => target.destroy()).on("error", () => target.destroy());
    };
    pass("plugin", plugin, runtime);
    pass("runtime", runtime, plugin);
  }
}
