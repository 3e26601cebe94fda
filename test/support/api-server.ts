/**
 * An API server for tests, over real TLS, with the given answers, which may be those of no API server. It also answers
 * look-ups of plugins at a socket, as an installer does.
 */
import { mkdtempSync, rmSync } from "node:fs";
import {
  createServer as createHttpServer,
  type Server as HttpServer,
  type IncomingMessage,
  type ServerResponse,
} from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { LOOKUP_SOCKET_NAME } from "../../cni/contract";
import { ANSWER_HEADER, ANSWER_VERSION } from "../../kubernetes/lookup-client";
import { authority } from "../../system/certificates.testing";
import { kubeconfig } from "./kubeconfig";

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/**
 * Answers with a status and an object, and a line feed after it, as API servers do; a 404 that is given nothing says what is
 * absent, as they do too.
 */
export function json(status: number, object: object): Answer {
  return ({ url = "" }, response) => {
    const body = status === 404 && Object.keys(object).length === 0 ? absent(url) : object;
    response.writeHead(status, { "content-type": "application/json" }).end(`${JSON.stringify(body)}\n`);
  };
}

function absent(url: string): object {
  const [kind, name] = (url.split("?")[0] ?? "").split("/").slice(-2);
  return {
    kind: "Status",
    apiVersion: "v1",
    status: "Failure",
    reason: "NotFound",
    details: { kind, name },
    code: 404,
  };
}

/** The TCP connections of all servers here, by their clients' ports. */
const connections = new Map<number | undefined, Socket>();

/** Resets the connection on which a request came. */
export function reset({ socket }: IncomingMessage): void {
  connections.get(socket.remotePort)?.resetAndDestroy();
}

export class ApiStub {
  /** Paths asked for, in order. */
  readonly requests: string[] = [];
  /** The directory of the socket for look-ups, which a stanza names as `run-dir`. */
  readonly runDir = mkdtempSync(join(tmpdir(), "lookups-"));
  private readonly lookups: HttpServer = createHttpServer();
  /** Connections that were encrypted. */
  handshakes = 0;
  answer: Answer;

  private constructor(
    private readonly server: Server,
    readonly ca: string,
    answer: Answer,
  ) {
    this.answer = answer;
  }

  /** @param address its certificate's; one of IPv6 is also what it listens on */
  static async start(answer: Answer, address = "127.0.0.1"): Promise<ApiStub> {
    const { cert, key } = authority("test API server", { names: [address] });
    const server = createServer({ cert, key });
    const stub = new ApiStub(server, cert, answer);
    server.on("connection", (socket: Socket) => {
      const { remotePort } = socket;
      connections.set(remotePort, socket);
      socket.once("close", () => connections.delete(remotePort));
    });
    server.on("secureConnection", () => {
      stub.handshakes += 1;
    });
    for (const each of [server, stub.lookups])
      each.on("request", (request: IncomingMessage, response: ServerResponse) => {
        if (each === stub.lookups) response.setHeader(ANSWER_HEADER, ANSWER_VERSION);
        stub.requests.push(request.url ?? "");
        stub.answer(request, response);
      });
    await stub.lookUp();
    await new Promise<void>((resolve) => server.listen(0, address.includes(":") ? address : "127.0.0.1", resolve));
    return stub;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** A kubeconfig as the installer writes it. */
  kubeconfig(): string {
    return kubeconfig({ host: "127.0.0.1", port: this.port, ca: this.ca, token: "secret" });
  }

  /** Answers look-ups, as from the beginning. */
  async lookUp(): Promise<void> {
    await new Promise<void>((resolve) => this.lookups.listen(join(this.runDir, LOOKUP_SOCKET_NAME), resolve));
  }

  /** Answers no more look-ups, as a node without an installer. */
  async lookUpNothing(): Promise<void> {
    this.lookups.closeAllConnections();
    await new Promise((resolve) => this.lookups.close(resolve));
  }

  /** How many connections are open. */
  openConnections(): Promise<number> {
    return promisify(this.server.getConnections.bind(this.server))();
  }

  /** Ends the connections that are open. */
  closeConnections(): void {
    this.server.closeAllConnections();
  }

  close(): void {
    for (const each of [this.server, this.lookups]) {
      each.close();
      each.closeAllConnections();
    }
    rmSync(this.runDir, { recursive: true, force: true });
  }
}
