import { connect, type Socket } from "node:net";
import { eventually } from "../../nri/runtime.testing";

/** As many at once as one hostile client would open. */
const SIZE = 64;

export interface CrowdOptions {
  /** Clients at any time. */
  readonly size?: number;
  /** Each resets its connection once it is there. */
  readonly isResetting?: boolean;
}

/** Clients that connect to a port, never finish a request, and connect again whenever they are thrown out. */
export class Crowd {
  private readonly sockets = new Set<Socket>();
  private connections = 0;
  private isLeaving = false;

  /** @param sent the bytes that each sends, one per character */
  constructor(
    private readonly port: number,
    private readonly sent: string,
    private readonly options: CrowdOptions = {},
  ) {
    for (let each = 0; each < (options.size ?? SIZE); each++) this.join();
  }

  /** Waits until so many connections were made. */
  async grown(connections: number): Promise<void> {
    await eventually(() => this.connections >= connections || undefined);
  }

  leave(): void {
    this.isLeaving = true;
    for (const socket of this.sockets) socket.destroy();
  }

  private join(): void {
    if (this.isLeaving) return;
    const socket = connect(this.port, "127.0.0.1");
    this.sockets.add(socket);
    socket.on("error", () => {});
    socket.once("connect", () => {
      this.connections++;
      if (this.options.isResetting) socket.resetAndDestroy();
      else if (this.sent !== "") socket.write(this.sent, "latin1");
    });
    socket.once("close", () => {
      this.sockets.delete(socket);
      this.join();
    });
  }
}
