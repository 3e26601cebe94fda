import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { eventually } from "../../system/eventually.testing";

/** As many at once as one hostile client would open. */
const SIZE = 64;

export interface CrowdOptions {
  /** Clients at any time. */
  readonly size?: number;
  /** Each resets its connection once it is there. */
  readonly isResetting?: boolean;
  /** They finish a TLS handshake before they send anything, and begin so many at a time. @default no TLS */
  readonly handshakes?: number;
}

/** Clients that connect to a port, never finish a request, and connect again whenever they are thrown out. */
export class Crowd {
  private readonly sockets = new Set<Socket>();
  private connections = 0;
  private handshakes = 0;
  /** Clients that wait for their turn to shake hands. */
  private queued = 0;
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
    if (this.options.handshakes !== undefined) {
      this.queued++;
      this.shakeHands(this.options.handshakes);
    } else this.open(connect(this.port, "127.0.0.1"), "connect");
  }

  /** Opens connections of clients that wait for their turn. */
  private shakeHands(most: number): void {
    while (this.queued > 0 && this.handshakes < most && !this.isLeaving) {
      this.queued--;
      this.handshakes++;
      const socket = connectTls({ port: this.port, host: "127.0.0.1", rejectUnauthorized: false });
      let isShaking = true;
      const done = () => {
        if (isShaking) this.handshakes--;
        isShaking = false;
        this.shakeHands(most);
      };
      socket.once("secureConnect", done);
      socket.once("close", done);
      this.open(socket, "secureConnect");
      // Without a reader, it does not notice the connection's end behind an answer.
      socket.resume();
    }
  }

  private open(socket: Socket, opened: "connect" | "secureConnect"): void {
    this.sockets.add(socket);
    socket.on("error", () => {});
    socket.once(opened, () => {
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
